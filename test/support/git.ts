/** A git repository in a temporary folder. */
import { execFileSync } from "node:child_process";
import type { TestContext } from "node:test";
import { folderWith, writeFiles, type Files } from "./cli.ts";

export interface Repository {
  folder: string;
  git(...args: string[]): string;
  /** Writes the files and commits all changes. Returns the commit's id. */
  commit(files: Files): string;
}

/** Environment variables that make git ignore the settings of the machine and of its user. */
export const GIT_ENV: Record<string, string> = {
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "t",
  GIT_AUTHOR_EMAIL: "t@example.com",
  GIT_COMMITTER_NAME: "t",
  GIT_COMMITTER_EMAIL: "t@example.com",
};

export function repository(t: Pick<TestContext, "after">): Repository {
  const folder = folderWith(t, {});
  const git = (...args: string[]): string =>
    execFileSync("git", args, {
      cwd: folder,
      env: { ...process.env, ...GIT_ENV },
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  git("init", "-q", "-b", "main");
  return {
    folder,
    git,
    commit(files) {
      writeFiles(folder, files);
      git("add", "-A");
      git("commit", "-q", "-m", "change");
      return git("rev-parse", "HEAD");
    },
  };
}
