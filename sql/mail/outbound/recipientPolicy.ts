import { addressKey } from '../../../shared/mail/address.ts'
import { isAllowed, type Rule } from '../../../shared/mail/emailRules.ts'
import { storageLimit } from '../../account/projects/projectLimits.ts'
import type { Queryable } from '../../db.ts'

/** Lists the recipients to whom a project wants to send a mail or a reply. */
export type WantedRecipients = {
  projectId: string
  scope: 'SEND' | 'REPLY'
  addresses: readonly string[]
}

/** Tells which recipients of a mail the service refuses, and whether the project's mail storage is full (`isFull`). */
export type SendPolicy = { refused: RefusedRecipient[]; isFull: boolean }

/**
 * Describes a recipient whom the service refuses, with the reason. Either the recipient is suppressed, for example
 * because of an earlier bounce, or an email rule of the project blocks the recipient.
 */
export type RefusedRecipient = { address: string; reason: 'suppressed' | 'rule' }

/**
 * Checks the recipients of a message against suppressions and email rules when the API accepts the message. No later
 * function repeats this check. The function also checks whether the project has reached its storage limit.
 * @param storageBytes is the service's storage limit, which applies to a project without its own storage limit. Null
 * means that the service sets no storage limit.
 * @returns the decision about the recipients of each mail, in the order of `wanted`.
 */
export async function readSendPolicies(
  db: Queryable,
  wanted: readonly WantedRecipients[],
  storageBytes: number | null,
): Promise<SendPolicy[]> {
  const projects = [...new Set(wanted.map(({ projectId }) => projectId))]
  const asked = wanted.flatMap(({ projectId, addresses }) =>
    addresses.map((address) => ({ projectId, address: addressKey(address) })),
  )
  const { rows } = await db.query<PolicyRow>({
    name: 'read-send-policies',
    text: `
      select p.project_id,
        array(
          select s.address from unnest($2::text[], $3::text[]) w (project_id, address)
          join suppressions s on s.project_id = w.project_id and s.address = w.address
          where w.project_id = p.project_id) as suppressed,
        coalesce((
          select json_agg(json_build_object('type', r.type, 'scope', r.scope, 'value', r.value))
          from email_rules r
          where r.project_id = p.project_id and r.scope in ('SEND', 'REPLY')), '[]') as rules,
        exists (
          select from project_storage s left join project_limits l on l.project_id = s.project_id
          where s.project_id = p.project_id and s.bytes >= ${storageLimit('$4::bigint')}) as is_full
      from unnest($1::text[]) p (project_id)`,
    values: [
      projects,
      asked.map(({ projectId }) => projectId),
      asked.map(({ address }) => address),
      storageBytes,
    ],
  })
  const policies = new Map(rows.map((row) => [row.project_id, row]))
  return wanted.map(({ projectId, scope, addresses }) => {
    const { suppressed, rules, is_full: isFull } = policies.get(projectId)!
    const bounced = new Set(suppressed)
    const refused = addresses.flatMap((address): RefusedRecipient[] => {
      if (!isAllowed(rules, scope, address)) return [{ address, reason: 'rule' }]
      return bounced.has(addressKey(address)) ? [{ address, reason: 'suppressed' }] : []
    })
    return { refused, isFull }
  })
}

type PolicyRow = { project_id: string; suppressed: string[]; rules: Rule[]; is_full: boolean }
