/**
 * The page about one person: what they can approve, what is pending for them, their votes and sessions, and who votes
 * on their behalf.
 */
import {
  Ago,
  Badge,
  Card,
  EmptyState,
  type Event,
  FactList,
  formatManager,
  hasScope,
  LedgerTimeline,
  listEntryTypes,
  LoadedPage,
  Page,
  Panels,
  renderPlain,
  request,
  signedInUserId,
  useLoad,
  userSignInAddress,
} from "../../console/app/kit.ts";
import type { User, UserDetails } from "./api-types.ts";
import { useUserCommands } from "./user-commands.tsx";
import { Badges, SignInMethods } from "./users.tsx";
import { DeviceCard } from "./device-card.tsx";
import { PERSON_TEXTS as TEXTS } from "./person-strings.ts";
import { DelegationCard, PendingRequestsCard, RightsCard, SessionCard } from "./person-cards.tsx";

export function Person({ id }: { id: string | null }) {
  const ownId = signedInUserId();
  const userId = id ?? ownId;
  if (userId === null)
    return (
      <Page title={TEXTS.title}>
        <EmptyState text={TEXTS.nobody}>
          <p>
            <a href={userSignInAddress()}>{TEXTS.signIn}</a>
          </p>
          {mayReadUsers() ? (
            <p>
              <a href="#/access-review">{TEXTS.review}</a>
            </p>
          ) : null}
        </EmptyState>
      </Page>
    );
  return <UserPage key={userId} id={userId} isOwn={userId === ownId} />;
}

const mayReadUsers = (): boolean => hasScope("users:read") || hasScope("users:manage");

function UserPage({ id, isOwn }: { id: string; isOwn: boolean }) {
  const loaded = useLoad((signal) => readUser(id, isOwn, signal), [id, isOwn]);
  const commands = useUserCommands(loaded.reload);
  const details = loaded.data?.details ?? null;
  const mayRead = isOwn || mayReadUsers();
  const title = loaded.data === null ? TEXTS.title : loaded.data.name;
  return (
    <LoadedPage
      title={title}
      what="the person"
      loaded={loaded}
      {...(mayReadUsers() ? { back: { href: "#/users", text: TEXTS.users } } : {})}
      side={
        <>
          {isOwn ? <Badge value="live" label="you" /> : null}
          {details === null ? null : commands.menu(details)}
        </>
      }
    >
      {({ user }) => (
        <>
          {commands.results}
          {commands.dialog}
          {user === null ? <p class="quiet">{TEXTS.limited}</p> : <About user={user} />}
          {mayRead ? <RightsCard id={id} /> : null}
          {mayRead && user?.ended_at === null && hasScope("actions:read") ? (
            <PendingRequestsCard id={id} isOwn={isOwn} />
          ) : null}
          {hasScope("approvals:decide") || mayReadUsers() ? <DelegationCard id={id} isOwn={isOwn} /> : null}
          {mayRead ? <SessionCard id={id} isOwn={isOwn} /> : null}
          <Panels place="person" user={id} />
          {isOwn ? <DeviceCard id={id} name={title} /> : null}
          <History id={id} />
        </>
      )}
    </LoadedPage>
  );
}

/** Resolves to the user, or only to the name if the credential cannot read users. */
async function readUser(
  id: string,
  isOwn: boolean,
  signal: AbortSignal,
): Promise<{ user: User | null; details: UserDetails | null; name: string }> {
  if (mayReadUsers()) {
    const details = await request("GET /v1/users/{id}", { path: [id], signal });
    return { user: details, details, name: details.name };
  }
  if (isOwn) {
    const { user } = await request("GET /v1/session", { signal });
    return { user, details: null, name: user.name };
  }
  if (!hasScope("actions:read") && !hasScope("provenance:read")) return { user: null, details: null, name: id };
  const { keys } = await request("GET /v1/api-keys/names", { query: { ids: id }, signal });
  return { user: null, details: null, name: keys[0]?.name ?? id };
}

function About({ user }: { user: User | UserDetails }) {
  const { roles, groups, passkeys, managed_by, ended_at } = user;
  const configured = "configured_groups" in user ? user.configured_groups : [];
  return (
    <section class="card" aria-label="About">
      {ended_at === null ? null : (
        <p>
          <Badge value="revoked" label={TEXTS.ended} /> <Ago at={ended_at} />
        </p>
      )}
      <FactList
        rows={[
          ["Roles", <Badges values={roles} none="no role" />],
          ["Groups", <Badges values={[...groups, ...configured]} none="none" />],
          ["Signs in with", <SignInMethods user={user} />],
          ["Passkeys", passkeys.length === 0 ? null : passkeys.map(({ name }) => renderPlain(name)).join(", ")],
          [
            "Managed by",
            managed_by === null ? null : `${formatManager(managed_by)}, which also changes the name, roles and groups`,
          ],
        ]}
      />
    </section>
  );
}

/** Entry types of votes. `TYPES` contains all entry types that can be about a person, without those of features. */
const VOTE_TYPES = "approval";
const TYPES = `${VOTE_TYPES},question,erasure`;

/** The members of entries that identify a person. */
interface Entry {
  by?: { principal: string } | null;
  user?: { id: string };
  delegation?: { from: string; to?: string } | null;
  data?: { user_id?: string };
  verdict?: string;
}

function History({ id }: { id: string }) {
  const principal = `user:${id}`;
  const isBy = ({ by, delegation }: Entry): boolean => by?.principal === principal || delegation?.from === principal;
  const isVote = ({ entry }: Event): boolean => {
    const { verdict } = entry as Entry;
    return (verdict === "approve" || verdict === "deny") && isBy(entry as Entry);
  };
  const isAbout = ({ entry }: Event): boolean => {
    const { user, delegation, data } = entry as Entry;
    if (isBy(entry as Entry)) return true;
    return [user?.id, delegation?.from, delegation?.to, data?.user_id].includes(id);
  };
  return (
    <>
      <Card id="votes" title={TEXTS.votes}>
        <p class="quiet">
          {TEXTS.votesHelp} {mayReadUsers() ? <a href="#/access-review">{TEXTS.review}</a> : null}
        </p>
        <LedgerTimeline label={TEXTS.votes} filters={{ type: VOTE_TYPES }} isWanted={isVote} />
      </Card>
      <Card id="timeline" title={TEXTS.timeline}>
        <LedgerTimeline
          label={TEXTS.timeline}
          filters={{ type: [TYPES, ...listEntryTypes("person")].join(",") }}
          isWanted={isAbout}
        />
      </Card>
    </>
  );
}
