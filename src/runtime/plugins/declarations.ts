/** Collects the names that plugins declare, before any of their code runs: scopes, errors, entry types, commands. */
import { Kind, type TObject } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { listBuiltInCommands } from "../../config/built-in-plugins.ts";
import type { AuditedFeatures } from "../../contract/audit.ts";
import { combineBars } from "../../contract/bar.ts";
import { CORE_COMMANDS } from "../../contract/command.ts";
import { combineGuards, type Guard } from "../../contract/guard.ts";
import type { Host } from "../../contract/host.ts";
import { ERRORS, errorCodePrefix, type ErrorKind } from "../../contract/errors.ts";
import type { Reaction } from "../../contract/reaction.ts";
import type { SoleApproval } from "../../contract/sole-approval.ts";
import type { VoteAddition } from "../../contract/vote-addition.ts";
import { ENTRY_TYPES, type EntryBody, isPluginEntry, type PluginEntry } from "../../domain/entries.ts";
import { SCOPES, type PluginScope, type Scope } from "../../domain/scopes.ts";
import { explainFault, siblingNames } from "../../domain/validation.ts";
import { CORE_FOLDS } from "../../identity/core-folds.ts";
import type { Plugin } from "../../plugin.ts";
import type { LoadedPlugin } from "./loader.ts";
import { PluginError } from "./plugin-options.ts";

export interface Declarations extends AuditedFeatures {
  /** All plugins, each with the path of its page; null if it declares none. */
  readonly plugins: Host["plugins"];
  /** All scopes of the core, then the scopes of plugins. */
  readonly scopes: readonly Scope[];
  /** Schemas of the entry types without a prefix that plugins declare. */
  readonly records: readonly TObject[];
  /** The errors that plugins declare. */
  readonly errors: readonly ErrorKind[];
  /** The errors with which steps refuse submissions. */
  readonly stepErrors: readonly ErrorKind[];
  readonly reactions: readonly Reaction[];
  readonly guard: Guard;
  /** Declares what else an approval can do; null if no plugin adds anything. */
  readonly voteAddition: VoteAddition | null;
  /** Declares how one person can approve without the other approvers; null if no plugin allows it. */
  readonly soleApproval: SoleApproval | null;
  /** Returns the fault of a plugin's entry; null if the entry is valid. */
  entryFault(entry: EntryBody): string | null;
}

/**
 * Collects the declarations. Throws PluginError for a name that the plugin must not use, or that another plugin uses.
 */
export function collectDeclarations(plugins: readonly LoadedPlugin[]): Declarations {
  assertNeeds(plugins);
  for (const { plugin } of plugins)
    for (const name of ["reactions", "guards"] as const)
      if (plugin[name] !== undefined && plugin.core !== true)
        throw new PluginError(
          plugin.name,
          `it declares ${name}, which take part in transactions on actions; define it with defineCorePlugin`,
        );
  const scopes = new Names("scope", SCOPES);
  const errors = new Names("error", Object.keys(ERRORS));
  const entries = new Names("entry type", ENTRY_TYPES);
  const brought: { scopes: PluginScope[]; errors: ErrorKind[] } = { scopes: [], errors: [] };
  const records = new Map<string, TObject>();
  const forms = new Map<string, (data: unknown) => string | null>();
  for (const { plugin } of plugins) {
    for (const scope of Object.values(plugin.scopes ?? {})) {
      scopes.add(plugin, `${plugin.name}:`, scope);
      brought.scopes.push(scope);
    }
    for (const kind of Object.values(plugin.errors ?? {})) {
      // The codes of privileged plugins are part of the documented API, so they need no prefix.
      errors.add(plugin, plugin.core === true ? "" : errorCodePrefix(plugin.name), kind?.code);
      assertKind(plugin, kind);
      brought.errors.push(kind);
    }
    for (const [type, form] of Object.entries(plugin.entries ?? {})) {
      // Like their errors, the types of privileged plugins are part of the documented record.
      entries.add(plugin, plugin.core === true ? "" : `${plugin.name}:`, type);
      if ((form as Partial<TObject> | undefined)?.[Kind] !== "Object")
        throw new PluginError(
          plugin.name,
          `the schema of its entry type "${type}" must be made with Type.Object of assent/plugin`,
        );
      forms.set(type, formOf(form));
    }
    for (const [type, schema] of Object.entries(plugin.records ?? {})) {
      if (plugin.core !== true)
        throw new PluginError(
          plugin.name,
          `its entry type "${type}" needs the prefix "${plugin.name}:"; declare it in "entries"`,
        );
      entries.add(plugin, "", type);
      records.set(type, schema);
      forms.set(type, formOf(schema));
    }
    assertCommand(plugin);
    assertPage(plugin);
  }
  const folds = [...CORE_FOLDS, ...plugins.flatMap(({ plugin }) => plugin.folds ?? [])];
  return Object.freeze({
    plugins: plugins.map(({ plugin: { name, page = null } }) => ({ name, page })),
    folds,
    notices: plugins.flatMap(({ plugin }) => plugin.notices ?? []),
    auditors: plugins.flatMap(({ plugin }) => plugin.auditors ?? []),
    bars: combineBars(plugins.flatMap(({ plugin }) => plugin.bars ?? [])),
    reactions: plugins.flatMap(({ plugin }) => plugin.reactions ?? []),
    guard: combineGuards(plugins.flatMap(({ plugin }) => plugin.guards ?? [])),
    voteAddition: findOnly(plugins, "voteAddition", "an addition to votes"),
    soleApproval: findOnly(plugins, "soleApproval", "approvals without other approvers"),
    stepErrors: plugins.flatMap(({ plugin }) => plugin.stepErrors ?? []),
    scopes: [...SCOPES, ...brought.scopes],
    errors: brought.errors,
    entryTypes: [...ENTRY_TYPES, ...([...forms.keys()] as Iterable<PluginEntry["type"]>)],
    records: [...records.values()],
    entryFault(entry: EntryBody) {
      const { type } = entry;
      const form = forms.get(type);
      if (form === undefined) return `no plugin declares the entry type "${type}"`;
      return form(isPluginEntry(entry) ? entry.data : { ...entry, seq: 0 });
    },
  });
}

/** Throws PluginError if a plugin needs another one that is not loaded. */
function assertNeeds(plugins: readonly LoadedPlugin[]): void {
  const names = plugins.map(({ plugin }) => plugin.name);
  for (const { plugin } of plugins)
    for (const name of plugin.needs ?? [])
      if (!names.includes(name))
        throw new PluginError(
          plugin.name,
          `it needs the plugin "${name}", which is not loaded; load it, or remove both`,
        );
}

/** Throws PluginError if a plugin declares the member without the privilege, or if two plugins do. */
function findOnly<Member extends "voteAddition" | "soleApproval">(
  plugins: readonly LoadedPlugin[],
  member: Member,
  noun: string,
): NonNullable<Plugin[Member]> | null {
  const [first, second] = plugins.filter(({ plugin }) => plugin[member] !== undefined);
  const faulty = second ?? (first?.plugin.core === true ? undefined : first);
  if (faulty !== undefined)
    throw new PluginError(
      faulty.plugin.name,
      second === undefined
        ? `it declares ${noun}; define it with defineCorePlugin`
        : `it declares ${noun}, as the plugin "${first?.plugin.name}" does; load one of them`,
    );
  return first?.plugin[member] ?? null;
}

/** Names of one kind, each with the plugin that owns it. */
class Names {
  private readonly owners = new Map<string, string>();
  private readonly kind: string;
  private readonly core: readonly string[];

  constructor(kind: string, core: readonly string[]) {
    this.kind = kind;
    this.core = core;
  }

  add({ name }: Plugin, prefix: string, declared: unknown): void {
    const its = `its ${this.kind} ${JSON.stringify(declared)}`;
    if (typeof declared !== "string" || !declared.startsWith(prefix) || declared.length === prefix.length)
      throw new PluginError(name, `${its} must be "${prefix}" followed by a name`);
    if (!/^[A-Za-z0-9_:.-]{1,64}$/.test(declared))
      throw new PluginError(name, `${its} must be at most 64 letters, digits, "_", "-", "." and ":"`);
    if (this.core.includes(declared))
      throw new PluginError(name, `${its} is already used by the core; choose another name`);
    const owner = this.owners.get(declared);
    if (owner === name) throw new PluginError(name, `${its} is declared twice; declare it once`);
    if (owner !== undefined) throw new PluginError(name, `${its} is already used by plugin "${owner}"`);
    this.owners.set(declared, name);
  }
}

function assertKind({ name }: Plugin, { code, status, title }: ErrorKind): void {
  if (!Number.isInteger(status) || status < 400 || status > 599)
    throw new PluginError(name, `its error "${code}" has the status ${status}; one from 400 to 599 is expected`);
  if (typeof title !== "string" || title === "") throw new PluginError(name, `its error "${code}" has no title`);
}

function assertCommand({ name, command }: Plugin): void {
  if (command === undefined) return;
  if ([...CORE_COMMANDS, ...Object.keys(listBuiltInCommands())].includes(name))
    throw new PluginError(
      name,
      `its command would be "assent ${name}", which is a built-in command; choose another name for the plugin`,
    );
  for (const member of ["summary", "help"] as const)
    if (typeof command?.[member] !== "string") throw new PluginError(name, `its command has no "${member}"`);
  if (typeof command.run !== "function") throw new PluginError(name, 'its command has no "run"');
}

function assertPage({ name, page }: Plugin): void {
  if (page !== undefined && (typeof page !== "string" || !page.endsWith(".js")))
    throw new PluginError(name, `its "page" must be the path of a .js file; got ${JSON.stringify(page)}`);
}

function formOf(schema: TObject): (data: unknown) => string | null {
  const check = TypeCompiler.Compile(schema);
  return (data) => {
    if (check.Check(data)) return null;
    const fault = check.Errors(data).First();
    return fault === undefined
      ? "it does not match the schema"
      : `data${fault.path}: ${explainFault(fault, siblingNames(schema, fault.path))}`;
  };
}
