/** Texts of the page about a person. */

export const PERSON_TEXTS = {
  title: "Person",
  users: "Users",
  nobody: "You are signed in with an API key, which does not identify a person.",
  signIn: "Sign in as a user",
  review: "Open the access review",
  limited: "Only the person and auditors see roles, sessions and pending requests (scope users:read).",
  ended: "deactivated",
  rights: "Can approve",
  nothing: "Nothing: the user is not an approver.",
  everything: "Everything that requires approval.",
  limits: "Actions that match at least one of these limits:",
  inPlaceOf: "Also on behalf of",
  pending: "Requests to approve",
  pendingRequests: "Pending requests",
  noPending: "Nothing that this person could approve is pending.",
  openPending: "Open in the inbox",
  cut: (shown: number, total: string) => `The ${shown} most urgent of ${total}.`,
  absence: "Absence and delegations",
  noAbsence: "No one votes in this person's place, and this person votes in no one's place.",
  absenceNext: "Before you are away, let another approver vote on your behalf.",
  allDelegations: "All delegations",
  sessions: "Sessions",
  openSessions: "Open sessions",
  noSessions: "The person is not signed in.",
  endSession: "End",
  endAll: "End all sessions",
  thisSession: "this one",
  unknownBrowser: "unknown browser",
  endedOne: "The session has ended.",
  endedAll: "All sessions have ended.",
  votes: "Votes",
  votesHelp: "From the newest entries of the ledger.",
  timeline: "Timeline",
} as const;

/** Texts of the card with the user's devices. */
export const DEVICE_TEXTS = {
  title: "Notifications on your devices",
  help: "Notifications name the agent, the tool and the operation, never parameters. To vote, the request opens here, and you sign with your passkey.",
  add: "Notify this device",
  adding: "Waiting for the browser…",
  added: "This device is notified.",
  notAllowed: "The browser did not allow notifications, so this device is not notified.",
  removed: "The device is no longer notified.",
  unsupported:
    "This browser cannot show notifications here. They need HTTPS or localhost, and on an iPhone or iPad the console on the Home Screen: share, “Add to Home Screen”, and open it from there.",
  blocked:
    "Notifications of this site are blocked. Allow them in the browser's settings for this site, and reload the page.",
  devices: "Devices that are notified",
  thisDevice: "this device",
  unknownBrowser: "unknown browser",
  remove: "Remove",
  test: "Send a test",
  tested:
    "The push service accepted the test notification, and the device shows it within seconds. If not, look at the notifications of the browser and at focus modes in the settings of the device.",
  notTested: {
    refused: "The push service did not accept the test notification:",
    ended: "The subscription of the device has ended, so it was removed. Choose “Notify this device” on it again.",
    unreachable: "The push service could not be reached:",
  },
  channels: "These channels notify you:",
  noChannel:
    "No channel notifies you on your devices yet. An operator adds you to one in assent.yaml, and a policy names the channel under notify.",
  snippet: "Lines for assent.yaml",
} as const;
