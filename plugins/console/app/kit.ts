/**
 * `assent/console`: components and functions for pages of the console. A page of a built-in feature imports only this
 * module, packages, and files of its own folder. `docs/writing-a-plugin.md` builds a page.
 *
 *   import { h, LoadedPage, request, Table, useLoad } from "assent/console";
 */

// What a plugin adds to the console
export type {
  Command,
  ConsolePart,
  EntryTexts,
  Finder,
  FoundObject,
  PageEntry,
  Panel,
  PartTexts,
  Places,
  Section,
  TimelineName,
  VoteAddition,
  VoteElsewhere,
  VoteTerms,
} from "./core/parts.ts";
export { findVoteElsewhere, hasPanels, listEntryTypes, loadTexts, scopeTexts } from "./core/parts.ts";

/** Preact, for pages that no bundler builds. All pages must use this copy. */
export { Fragment, h, type ComponentChildren, type ComponentType } from "preact";
export { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

// Requests. The types of the API are those of the routes of all built-in plugins.
export type * from "./core/api-types.ts";
export {
  ApiError,
  buildUrl,
  encodeSegment,
  fetchJson,
  fetchJsonWithEtag,
  fetchText,
  request,
  type ResponseFault,
  sendRequest,
  serviceNow,
} from "./core/api.ts";
export { followLiveEvents, type LedgerEvent } from "./core/live-events.ts";

// The signed-in user or key
export { currentMe, hasScope, type Me, signedInUserId } from "./core/me.ts";
export { isUserSession, userSignInAddress } from "./core/session.ts";
export { deviceId, pushSupport, subscribeDevice, unsubscribeDevice } from "./core/device.ts";

/** Unsaved drafts, which the console lists before a sign-out. */
export { deletePageDraft, readPageDraft, writePageDraft } from "./core/page-drafts.ts";

/** Keys of a page, which the list of keyboard shortcuts shows. */
export { type Shortcut, useShortcuts } from "./core/shortcuts.ts";

// Loading
export { type LoadState, useAddressedForm, useLoad, useNow } from "./ui/hooks.ts";
export { type PagedRows, usePaged } from "./ui/paged.ts";
export { listLeaves } from "./ui/edited.tsx";
export { Panels } from "./ui/panels.tsx";
export { FlagUse } from "./ui/flag-use.tsx";

// Pages, cards, dialogs and forms
export { Dialog } from "./ui/dialog.tsx";
export { Checklist, Field, FormButtons, readFormValues, useSubmit } from "./ui/forms.tsx";
export { LoadedPage } from "./ui/loaded-page.tsx";
export { Card, LoadedCard } from "./ui/section.tsx";
export { Permission, PermissionsCard } from "./ui/permissions.tsx";
export { PagedList } from "./ui/paged-list.tsx";
export { CommandButton, RowMenu, type RowCommand } from "./ui/row-menu.tsx";
export { RowPages } from "./ui/row-pages.tsx";
export {
  EmptyState,
  ErrorNotice,
  FactList,
  Loading,
  Notice,
  OneLine,
  Page,
  ResultNotice,
  StreamStatus,
  Table,
} from "./ui/elements.tsx";

// Values. Text from the API is displayed by `MarkedValue` or `JsonBlock`, which show hidden characters.
export {
  Age,
  Ago,
  Badge,
  CopyButton,
  Day,
  downloadBlob,
  downloadText,
  Hash,
  JsonBlock,
  MarkedValue,
  Time,
  TimeLeft,
  TimeUntil,
} from "./ui/elements.tsx";
export { MarkedText } from "./ui/marked-text.tsx";
export {
  formatCounted,
  formatDuration,
  formatManager,
  formatPatterns,
  formatTime,
  renderPlain,
  splitList,
  toLocalInput,
} from "./ui/format.ts";
export { JsonDisclosure, Params } from "./ui/params.tsx";
export { readReadiness } from "./system/readiness.ts";
export { StalePolicies } from "./system/stale-policies.tsx";
export { ActionName } from "./ui/entry-step.tsx";
export { KeyName, personAddress, PersonLink, PrincipalName } from "./ui/person.tsx";
export { PageLink } from "./ui/page-link.tsx";
export { Snippet } from "./ui/snippet.tsx";
export { Icon, type IconName } from "./ui/icons.tsx";
export { type Bar, Bars, LinkedCount, SummaryFigure } from "./ui/bars.tsx";
export { Chart } from "./ui/chart.tsx";

// Timelines, and the ledger
export { LedgerTimeline } from "./ui/ledger-timeline.tsx";
export { Timeline, type TimelineStep } from "./ui/timeline.tsx";

/** Votes that are signed with a passkey, several with one gesture. */
export { countApprovals } from "./inbox/vote-availability.ts";
export { DIFFERENT_VOTES_MESSAGE, nullWithoutPasskey, signVotesWithPasskey } from "./inbox/signed-votes.ts";

// Requests of agents
export {
  ActionPreview,
  ActionTitle,
  ApprovalReason,
  RequestContent,
  RequestHeadline,
  RiskBadge,
} from "./ui/request-view.tsx";
export { SubmitSnippet } from "./inbox/submit-snippet.tsx";
export { findRuleLines } from "./ui/rule-lines.ts";

// Reports about flips: past decisions that would now have a different effect
export { type CurrentFlips, RuleName } from "./ui/flip-list.tsx";
export { ReportRange, ReportResults } from "./ui/flip-report.tsx";
export { flipKey, type FlipReport } from "./ui/flips.ts";
export { type ReportProgress, useReport } from "./ui/report-parts.ts";
