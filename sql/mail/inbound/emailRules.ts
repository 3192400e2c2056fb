import type { Cursor } from '../../../shared/cursor.ts'
import { newRuleId } from '../../../shared/ids.ts'
import type { Rule, RuleScope } from '../../../shared/mail/emailRules.ts'
import { holdProject } from '../../account/projects/holdProject.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { pageStart } from '../../pageStart.ts'

/** Holds the PostgreSQL channel on which the service announces the inbox address with changed email rules. */
export const RULES_CHANNEL = 'email_rules'

/** Sets the maximum number of email rules of one project. */
export const RULES_MAX = 1_000

export type StoredRule = Rule & { id: string; row: bigint; createdAt: Date }

/** Reports that a project already has {@link RULES_MAX} email rules. */
export class TooManyRulesError extends Error {}
/** Reports that a new email rule contradicts an existing email rule for the same address in the same scope. */
export class RuleConflictError extends Error {}

type RuleRow = {
  id: string
  row: string
  type: Rule['type']
  scope: RuleScope
  value: string
  created_at: Date
}

const toRule = (row: RuleRow): StoredRule => ({
  id: row.id,
  row: BigInt(row.row),
  type: row.type,
  scope: row.scope,
  value: row.value,
  createdAt: row.created_at,
})

/**
 * Adds an email rule. If the project already has the same email rule, the function changes nothing.
 * @returns the email rule, and whether the rule is new.
 * @throws {TooManyRulesError} if the project has too many email rules. @throws {RuleConflictError} if the new email
 * rule contradicts an existing one.
 */
export async function createRule(
  pool: Pool,
  projectId: string,
  { type, scope, value }: Rule,
): Promise<{ rule: StoredRule; isNew: boolean }> {
  return transaction(pool, async (db) => {
    await holdProject(db, projectId)
    const existing = await db.query<RuleRow>(
      'select * from email_rules where project_id = $1 and scope = $2 and value = $3',
      [projectId, scope, value],
    )
    if (existing.rows[0] !== undefined) {
      if (existing.rows[0].type !== type) throw new RuleConflictError()
      return { rule: toRule(existing.rows[0]), isNew: false }
    }
    const { rows } = await db.query<RuleRow>(
      `insert into email_rules (id, project_id, type, scope, value)
       select $1, $2, $3, $4, $5
       where (select count(*) from email_rules where project_id = $2) < ${RULES_MAX}
       returning *`,
      [newRuleId(), projectId, type, scope, value],
    )
    if (rows[0] === undefined) throw new TooManyRulesError()
    await notifyRulesChanged(db, projectId)
    return { rule: toRule(rows[0]), isNew: true }
  })
}

/** Deletes an email rule. @returns false if the project has no such email rule. */
export async function deleteRule(pool: Pool, projectId: string, id: string): Promise<boolean> {
  return transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      'delete from email_rules where project_id = $1 and id = $2',
      [projectId, id],
    )
    if (rowCount === 0) return false
    await notifyRulesChanged(db, projectId)
    return true
  })
}

const notifyRulesChanged = (db: Queryable, projectId: string) =>
  db.query(`select pg_notify('${RULES_CHANNEL}', email_address) from projects where id = $1`, [
    projectId,
  ])

/** Lists the email rules of a project, newest first, with at most `limit` rules after the cursor. */
export async function listRules(
  db: Queryable,
  { projectId, limit, cursor }: { projectId: string; limit: number; cursor: Cursor | null },
): Promise<StoredRule[]> {
  const { rows } = await db.query<RuleRow>(
    `select * from email_rules where project_id = $1 and (created_at, row) < ($2::timestamptz, $3::bigint)
     order by created_at desc, row desc limit $4`,
    [projectId, ...pageStart(cursor), limit],
  )
  return rows.map(toRule)
}

/** Returns the email rules of a project in the given scopes. */
export async function readRules(
  db: Queryable,
  projectId: string,
  scopes: readonly RuleScope[],
): Promise<Rule[]> {
  const { rows } = await db.query<Rule>({
    name: 'read-rules',
    text: 'select type, scope, value from email_rules where project_id = $1 and scope = any ($2)',
    values: [projectId, scopes],
  })
  return rows
}

/** Returns the email rules of several projects. The result leaves out projects that have no email rules. */
export async function readRulesOf(
  db: Queryable,
  projectIds: readonly string[],
  scopes: readonly RuleScope[],
): Promise<Map<string, Rule[]>> {
  const { rows } = await db.query<Rule & { project_id: string }>({
    name: 'read-rules-of',
    text: `select project_id, type, scope, value from email_rules where project_id = any ($1) and scope = any ($2)`,
    values: [projectIds, scopes],
  })
  return Map.groupBy(rows, ({ project_id }) => project_id)
}

/** Describes an email rule that decides whether an inbox refuses a sender. */
export type SenderRule = { inbox: string; type: Rule['type']; value: string }

/**
 * Lists the email rules that decide about blocked senders of an inbox: each blocking rule, and each rule that allows an
 * address of a blocked domain. If `inbox` is null, the list covers all inboxes.
 */
export async function listSenderRules(db: Queryable, inbox: string | null): Promise<SenderRule[]> {
  const { rows } = await db.query<SenderRule>(
    `select p.email_address as inbox, r.type, r.value from email_rules r join projects p on p.id = r.project_id
     where r.scope = 'RECEIVE' and p.deleted_at is null
       and (r.type = 'BLOCK' or exists (
         select from email_rules b
         where b.project_id = r.project_id and b.scope = 'RECEIVE' and b.type = 'BLOCK'
           and b.value = '*' || substring(r.value from '@[^@]*$')))
       and ($1::text is null or p.email_address = $1)`,
    [inbox],
  )
  return rows
}
