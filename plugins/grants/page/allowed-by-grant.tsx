/** On the page about an action: the grant that allowed it, and a button that flags this use. */
import { Ago, encodeSegment, FlagUse, PersonLink, type Places, request, useLoad } from "../../console/app/kit.ts";
import { TEXTS } from "./strings.ts";

export function AllowedByGrant({ action: { id, grant }, onChange }: Places["action-allowed"]) {
  return grant === null ? null : <Use key={grant} action_id={id} grant={grant} onChange={onChange} />;
}

interface UseProps extends Pick<Places["action-allowed"], "onChange"> {
  action_id: string;
  grant: string;
}

function Use({ action_id, grant, onChange }: UseProps) {
  const { data } = useLoad((signal) => request("GET /v1/grants/{id}", { path: [grant], signal }), [grant]);
  const flag = async (reason: string): Promise<void> => {
    await request("POST /v1/grants/{id}/flag", { path: [grant], body: { action_id, reason } });
    onChange(TEXTS.flag.done);
  };
  return (
    <>
      <p>
        {TEXTS.byGrant}{" "}
        {data === null ? null : (
          <>
            <PersonLink principal={data.granted_by} /> made it <Ago at={data.granted_at} />.{" "}
          </>
        )}
        <a href={`#/actions?grant_id=${encodeSegment(grant)}`}>{TEXTS.showUses}</a>
      </p>
      <p class="row">
        <FlagUse texts={TEXTS.flag} name={grant} flag={flag} />
      </p>
    </>
  );
}
