import { addressKey } from '../../shared/mail/address.ts'
import { isAllowed, type Rule } from '../../shared/mail/emailRules.ts'
import type { Queryable } from '../db.ts'

/** The recipients of a send or reply of one project. */
export type WantedRecipients = {
  projectId: string
  scope: 'SEND' | 'REPLY'
  addresses: readonly string[]
}

/** A refused recipient: suppressed (an earlier bounce), or blocked by a rule of the project. */
export type RefusedRecipient = { address: string; reason: 'suppressed' | 'rule' }

/**
 * The only check of recipients when the API accepts a message: suppressions and email rules.
 * @returns the refused recipients of each item of `wanted`, in order.
 */
export async function refusedRecipients(
  db: Queryable,
  wanted: readonly WantedRecipients[],
): Promise<RefusedRecipient[][]> {
  const projects = [...new Set(wanted.map(({ projectId }) => projectId))]
  const asked = wanted.flatMap(({ projectId, addresses }) =>
    addresses.map((address) => ({ projectId, address: addressKey(address) })),
  )
  const { rows } = await db.query<{ project_id: string; suppressed: string[]; rules: Rule[] }>({
    name: 'refused-recipients',
    text: `
      select p.project_id,
        array(
          select s.address from unnest($2::text[], $3::text[]) w (project_id, address)
          join suppressions s on s.project_id = w.project_id and s.address = w.address
          where w.project_id = p.project_id) as suppressed,
        coalesce((
          select json_agg(json_build_object('type', r.type, 'scope', r.scope, 'value', r.value))
          from email_rules r
          where r.project_id = p.project_id and r.scope in ('SEND', 'REPLY')), '[]') as rules
      from unnest($1::text[]) p (project_id)`,
    values: [
      projects,
      asked.map(({ projectId }) => projectId),
      asked.map(({ address }) => address),
    ],
  })
  const policies = new Map(rows.map((row) => [row.project_id, row]))
  return wanted.map(({ projectId, scope, addresses }) => {
    const { suppressed, rules } = policies.get(projectId)!
    const bounced = new Set(suppressed)
    return addresses.flatMap((address): RefusedRecipient[] => {
      if (!isAllowed(rules, scope, address)) return [{ address, reason: 'rule' }]
      return bounced.has(addressKey(address)) ? [{ address, reason: 'suppressed' }] : []
    })
  })
}
