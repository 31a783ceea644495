/** The frame of every page: sign-in, menu, and the page of the current address. */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { encodeSegment, fetchJson } from "../core/api.ts";
import { renewDevice, unsubscribeDevice } from "../core/device.ts";
import { clearMe, hasScope, loadMe, currentMe, type Me } from "../core/me.ts";
import {
  type Command,
  listCommands,
  listPages,
  loadModule,
  type PageEntry,
  type Section,
  SECTIONS,
} from "../core/parts.ts";
import {
  requestKeyFromTabs,
  currentCredential,
  isUserSession,
  listenToOtherTabs,
  signOut,
  watchSession,
} from "../core/session.ts";
import { useShortcuts } from "../core/shortcuts.ts";
import { listPageDrafts } from "../core/page-drafts.ts";
import { castHeldVotes, heldVotes } from "../inbox/held-votes.ts";
import { OutageBanner, Loading, Notice, Page, ErrorNotice } from "../ui/elements.tsx";
import { useLoad } from "../ui/hooks.ts";
import { Icon } from "../ui/icons.tsx";
import { KeyName } from "../ui/person.tsx";
import { LazyPart, Panels } from "../ui/panels.tsx";
import { CommandPalette } from "./palette.tsx";
import { currentRoute, type Route } from "./router.ts";
import { SignIn } from "./sign-in.tsx";
import { PageLink } from "../ui/page-link.tsx";

const HELP: Command = {
  title: "Keyboard shortcuts",
  icon: "help",
  isOffered: () => true,
  load: async () => (await import("./help.tsx")).Help,
};
const loadSignOutDialog = async () => (await import("./sign-out-dialog.tsx")).SignOutDialog;

/** @param props.failed why parts of plugins are missing, one sentence for each */
export function Shell({ failed }: { failed: readonly string[] }) {
  const [isSignedIn, setSignedIn] = useState<boolean | null>(currentCredential() === null ? null : true);
  const [why, setWhy] = useState("");
  // Not after painting, because the console waits for the response of the other tabs.
  useLayoutEffect(() => {
    listenToOtherTabs();
    const stop = watchSession((credential, reason) => {
      if (credential === null) clearMe();
      setWhy(reason);
      setSignedIn(credential !== null);
    });
    if (isSignedIn === null) void requestKeyFromTabs().then((credential) => setSignedIn(credential !== null));
    return stop;
  }, []);
  return (
    <>
      <OutageBanner />
      {isSignedIn === null ? (
        <main class="sign-in">
          <Loading what="the console" />
        </main>
      ) : isSignedIn ? (
        <Console key={currentCredential()} failed={failed} />
      ) : (
        <SignIn why={why} />
      )}
    </>
  );
}

function canOpenPage({ scopes }: PageEntry): boolean {
  return scopes.length === 0 || scopes.some(hasScope);
}

function Console({ failed }: { failed: readonly string[] }) {
  const [route, setRoute] = useState(currentRoute());
  const main = useRef<HTMLElement>(null);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const {
    data: user,
    error,
    reload,
  } = useLoad(async (signal) => {
    importPage(currentRoute().name);
    return currentMe() ?? loadMe(signal);
  }, []);
  const [command, setCommand] = useState<Command | null>(null);
  const [signOutError, setSignOutError] = useState<unknown>(null);
  const [isLeaving, setLeaving] = useState(false);
  const leave = (): void => {
    setLeaving(false);
    void endSession().catch(setSignOutError);
  };
  useEffect(() => {
    const update = (): void => {
      setRoute(currentRoute());
      setMenuOpen(false);
    };
    addEventListener("hashchange", update);
    // The address may have changed since the first rendering.
    update();
    return () => removeEventListener("hashchange", update);
  }, []);
  useEffect(() => {
    if (user !== null && isUserSession()) void renewDevice(user.key.id).catch(() => undefined);
  }, [user === null]);
  useShortcuts("everywhere", [{ keys: "?", text: "Show the keys of this page", on: { "?": () => setCommand(HELP) } }]);
  const pages = user === null ? [] : listPages().filter(canOpenPage);
  const commands = user === null ? [] : [...listCommands(user), HELP];
  const signOut = (): void => (listPageDrafts().length > 0 ? setLeaving(true) : leave());
  const name = route.name === "" ? (pages[0]?.name ?? "") : route.name;
  return (
    <>
      <SkipLink main={main} />
      <div class="shell">
        <Menu
          user={user}
          pages={pages}
          current={name}
          isOpen={isMenuOpen}
          onToggle={() => setMenuOpen(!isMenuOpen)}
          commands={commands}
          onCommand={setCommand}
          onSignOut={signOut}
        />
        <main id="main" ref={main} class={`page-${name}`}>
          <ErrorNotice error={error} onRetry={reload} />
          <ErrorNotice error={signOutError} />
          {failed.map((text) => (
            <Notice key={text} kind="bad">
              {text}
            </Notice>
          ))}
          {user === null ? null : <Panels place="banner" />}
          {user !== null ? (
            <Current route={{ ...route, name }} main={main} />
          ) : error === null ? (
            <Loading what="the console" />
          ) : null}
        </main>
      </div>
      {user === null ? null : (
        <CommandPalette pages={pages} commands={commands} onCommand={setCommand} onSignOut={signOut} />
      )}
      {isLeaving ? (
        <LazyPart load={loadSignOutDialog} props={{ onClose: () => setLeaving(false), onSignOut: leave }} />
      ) : null}
      {command === null ? null : (
        <LazyPart key={command.title} load={command.load} props={{ onClose: () => setCommand(null) }} />
      )}
    </>
  );
}

/** Renders a link for keyboard users that moves the focus past the menu, to the page's heading. */
function SkipLink({ main }: { main: RefObject<HTMLElement | null> }) {
  return (
    <a
      class="skip"
      href="#main"
      onClick={(event) => {
        event.preventDefault();
        main.current?.querySelector("h1")?.focus();
      }}
    >
      Skip to the page
    </a>
  );
}

interface MenuProps {
  /** Null until it is loaded. */
  user: Me | null;
  pages: readonly PageEntry[];
  /** Name of the current page. */
  current: string;
  isOpen: boolean;
  onToggle(): void;
  commands: readonly Command[];
  onCommand(command: Command): void;
  onSignOut(): void;
}

function Menu({ user, pages, current, isOpen, onToggle, commands, onCommand, onSignOut }: MenuProps) {
  return (
    <nav aria-label="Console" class={isOpen ? "open" : ""}>
      <div class="brand">
        <strong>Assent</strong>
        <button type="button" class="menu" aria-expanded={isOpen} aria-controls="menu" onClick={onToggle}>
          <Icon name="menu" /> Menu
        </button>
      </div>
      <ul id="menu">
        {SECTIONS.map((section) => (
          <MenuSection
            key={section}
            title={section}
            pages={pages.filter((page) => page.section === section)}
            current={current}
          />
        ))}
        {commands.map((command, i) => (
          <li key={command.title} class={i === 0 ? "apart" : ""}>
            <button type="button" class={command.isUrgent === true ? "urgent" : ""} onClick={() => onCommand(command)}>
              <Icon name={command.icon} />
              {command.title}
            </button>
          </li>
        ))}
      </ul>
      <div class="whose">
        {user === null ? null : (
          <span class="who">
            {isUserSession() ? "User: " : "Key: "}
            {isUserSession() ? (
              <PageLink href={`#/people/${encodeSegment(user.key.id)}`}>
                <KeyName id={user.key.id} />
              </PageLink>
            ) : (
              <KeyName id={user.key.id} />
            )}
          </span>
        )}
        <button type="button" class="small" onClick={onSignOut}>
          <Icon name="log-out" />
          Sign out
        </button>
      </div>
    </nav>
  );
}

/**
 * Renders one section of the menu. The last section ends with the link to the API documentation, which is not a page of
 * the console.
 */
function MenuSection({ title, pages, current }: { title: Section; pages: readonly PageEntry[]; current: string }) {
  const isLast = title === SECTIONS.at(-1);
  if (pages.length === 0 && !isLast) return null;
  return (
    <li class="menu-section">
      {title === SECTIONS[0] ? null : <span class="menu-title">{title}</span>}
      <ul>
        {pages.map((page) => (
          <li key={page.name}>
            <a href={`#/${page.name}`} {...(page.name === current ? { "aria-current": "page" as const } : {})}>
              <Icon name={page.icon} />
              {page.title}
            </a>
          </li>
        ))}
        {isLast ? (
          <li>
            <a href="/docs">
              <Icon name="book" />
              API
            </a>
          </li>
        ) : null}
      </ul>
    </li>
  );
}

/**
 * Signs out in every tab. Throws if a vote cannot be recorded or the service cannot end the user's session; the user then
 * stays signed in.
 */
async function endSession(): Promise<void> {
  await castHeldVotes();
  if (heldVotes.value.some(({ state }) => state !== "late"))
    throw new Error("a vote of yours is not recorded yet; repeat or undo it under Approvals, then sign out");
  if (isUserSession()) await fetchJson("/v1/session", { method: "DELETE" });
  signOut();
  // The end of a user's session has already removed the device in the service, so do not wait for the push service.
  void unsubscribeDevice().catch(() => undefined);
}

/** Loads and renders the page of the current address. */
function Current({ route, main }: { route: Route; main: RefObject<HTMLElement | null> }) {
  const page = listPages().find(({ name }) => name === route.name) ?? null;
  const isOpenable = page !== null && canOpenPage(page);
  const { data, error, reload } = useLoad(async () => (isOpenable ? loadPage(page) : null), [isOpenable, route.name]);
  const View = data !== null && data.name === route.name ? data.View : null;
  // Focus the heading of a new page, so that screen readers announce it. Skip the first page.
  const isFirst = useRef(true);
  useEffect(() => {
    if (isOpenable && View === null) return;
    const focused = document.activeElement;
    // Do not move the focus if the page has already moved it, as the inbox does.
    if (!isFirst.current && (focused === document.body || focused?.closest("nav")))
      main.current?.querySelector("h1")?.focus();
    isFirst.current = false;
  }, [route.name, route.id, View]);
  if (page === null)
    return (
      <Page title="Page not found">
        <p>
          The console has no page at <code>{location.hash}</code>. The address may be mistyped or cut off.
        </p>
        <p>
          <a href="#/">Go to the first page</a>
        </p>
      </Page>
    );
  if (!isOpenable)
    return (
      <Page title={page.title}>
        <p>
          The {isUserSession() ? "user" : "key"} that you are signed in with cannot open this page: it needs the scope{" "}
          <code>{page.scopes[0]}</code>.
        </p>
        <p>
          <a href="#/">Go to the first page</a>
        </p>
      </Page>
    );
  if (error !== null)
    return (
      <Page title={page.title}>
        <ErrorNotice error={error} onRetry={reload} />
      </Page>
    );
  if (View === null) return <Loading what={page.title.toLowerCase()} />;
  return <View key={route.name} id={route.id} query={route.query} />;
}

/** Starts to import a page, before it is known whether the credential can open it. `Current` reports errors. */
function importPage(name: string): void {
  listPages()
    .find((page) => name === "" || page.name === name)
    ?.load()
    .catch(() => undefined);
}

async function loadPage(page: PageEntry) {
  return { name: page.name, View: await loadModule(page.load) };
}
