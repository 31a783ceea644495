import { each, whole, text, like, listOf, id, has, words, type Plain } from "./meaning.ts";

const fields = listOf(like(/^(?!.*(passw|secret|ssn|iban|card|health|passport))[A-Za-z0-9_.]{1,64}$/), 50);

/** A first and last name, an e-mail address, or a number: not a single word, which many customers share. */
const names = like(
  /^(?=.{3,200}$)(?!.*[*%?])([^@\s]+@[^@\s]+[.][^@\s]+|.*\p{L}['’]?[\p{L}\p{M}].* .*\p{L}['’]?[\p{L}\p{M}].*|\p{Lo}{3,}|.*[0-9]{4}.*|[+]?[0-9](?:[ ()/-]*[0-9]){5,})$/su,
);

export const customerData: readonly Plain[] = [
  {
    tools: ["crm", "tickets", "helpdesk", "zendesk", "salesforce", "hubspot"],
    operations: words("search_customers search_contacts search_accounts search_tickets find_customer find_contact"),
    params: { query: names, limit: whole(1, 50), fields },
    also: (params) => has(params, "query", "limit"),
    samples: [{ query: "Ada Lovelace", limit: 10, fields: ["name", "plan"] }],
  },
  {
    tools: ["crm", "tickets", "helpdesk", "zendesk", "salesforce", "hubspot"],
    operations: ["list_tickets", "list_notes"],
    params: { limit: whole(1, 50), ...each(["status", "customer_id", "assignee", "cursor"], id) },
    also: (params) => has(params, "limit"),
    samples: [{ limit: 20, status: "open", customer_id: 7 }],
  },
  {
    tools: ["crm", "tickets", "helpdesk", "zendesk", "salesforce", "hubspot"],
    operations: ["get_customer", "get_contact", "get_account", "get_ticket", "get_order", "get_note"],
    params: { ...each(["id", "customer_id", "ticket_id"], id), fields },
    also: (params) => Object.keys(params).some((key) => /^(id|customer_id|ticket_id)$/.test(key)),
    samples: [{ id: 7, fields: ["name", "plan"] }, { ticket_id: "T-1001" }],
  },
  {
    tools: ["crm", "tickets", "helpdesk", "zendesk", "salesforce", "hubspot"],
    operations: ["add_note", "create_ticket", "update_ticket", "close_ticket", "reopen_ticket"],
    params: {
      ...each(["id", "ticket_id", "customer_id", "status", "priority", "assignee"], id),
      ...each(["text", "subject"], text(5_000)),
      tags: listOf(like(/^[A-Za-z0-9_.:-]{1,64}$/), 50),
    },
    samples: [{ id: 12, text: "called back", priority: "high", tags: ["refund"] }],
  },
];
