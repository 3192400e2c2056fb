import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Cursor } from '../../shared/cursor.ts'
import { parseRuleValue, RULE_SCOPES, RULE_TYPES } from '../../shared/mail/emailRules.ts'
import type { Pool } from '../../sql/db.ts'
import {
  createRule,
  deleteRule,
  listRules,
  RULES_MAX,
  RuleConflictError,
  type StoredRule,
  TooManyRulesError,
} from '../../sql/mail/inbound/emailRules.ts'
import { badRequest, conflict, notFound } from '../http/errors.ts'
import { operation, PageQuery, Time } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import { projectOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'

const RuleType = t.Union(RULE_TYPES.map((type) => t.Literal(type)))
const RuleScope = t.Union(RULE_SCOPES.map((scope) => t.Literal(scope)))

export const RuleBody = t.Object({
  type: RuleType,
  scope: RuleScope,
  value: t.String({
    maxLength: 256,
    description: 'An address, or *@ and a domain.',
    examples: ['*@example.com'],
  }),
})

export const RuleItem = t.Object({
  id: t.String(),
  type: RuleType,
  scope: RuleScope,
  value: t.String(),
  createdAt: Time,
})

/**
 * Describes the response to a new email rule, which holds the rule as an object and repeats the fields of the rule at
 * the top level. Clients may read the email rule from the object or from the top-level fields.
 */
const AddedRule = t.Composite([t.Object({ rule: RuleItem }), RuleItem])

/** Describes one page of email rules. */
export const RulePage = t.Object({
  rules: t.Array(RuleItem),
  count: t.Integer(),
  nextPageToken: t.Optional(t.String()),
})

const EXAMPLE = {
  id: 'rul_0a1b2c3d4e5f60718293a4b5',
  type: 'BLOCK',
  scope: 'RECEIVE',
  value: '*@example.com',
  createdAt: '2026-01-05T09:30:00.000Z',
}

const toItem = ({ id, type, scope, value, createdAt }: StoredRule) => ({
  id,
  type,
  scope,
  value,
  createdAt: createdAt.toISOString(),
})

/**
 * Serves the email rules, which say from which addresses an inbox accepts mail, and to which addresses the inbox sends
 * and replies.
 */
export function emailRuleRoutes({ pool }: Services) {
  return new Elysia()
    .get(
      '/v0/email-rules',
      ({ request, query }) =>
        readRulePage(pool, { projectId: projectOf(request).projectId, ...readPage(query) }),
      {
        query: PageQuery,
        detail: operation({
          summary: 'List email rules, newest first',
          tag: 'Rules',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'One page of rules.',
            schema: RulePage,
            example: { rules: [EXAMPLE], count: 1 },
          },
        }),
      },
    )
    .post(
      '/v0/email-rules',
      async ({ request, body, set }) => {
        const { rule, isNew } = await addRule(pool, projectOf(request).projectId, body)
        set.status = isNew ? 201 : 200
        return { rule, ...rule }
      },
      {
        body: RuleBody,
        detail: operation({
          summary: 'Add an email rule',
          description:
            'RECEIVE applies when mail arrives; SEND and REPLY apply when it is sent. A rule for an address overrides a rule ' +
            'for its domain. A scope with an ALLOW rule refuses every address without a rule.',
          tag: 'Rules',
          access: 'mail:manage',
          requestExample: { type: 'BLOCK', scope: 'RECEIVE', value: '*@example.com' },
          success: {
            status: 201,
            description: 'The rule, also flat.',
            schema: AddedRule,
            example: { rule: EXAMPLE, ...EXAMPLE },
          },
          alsoAnswer: { status: 200, description: 'The rule existed; nothing changes.' },
          errors: { 409: 'A rule of the other type exists for this value and scope' },
        }),
      },
    )
    .delete(
      '/v0/email-rules/:ruleId',
      async ({ request, params }) => {
        await removeRule(pool, projectOf(request).projectId, params.ruleId)
        return new Response(null, { status: 204 })
      },
      {
        params: t.Object({ ruleId: t.String({ minLength: 1, maxLength: 64 }) }),
        detail: operation({
          summary: 'Delete an email rule',
          tag: 'Rules',
          access: 'mail:manage',
          success: { status: 204, description: 'The rule is deleted.' },
          errors: { 404: 'Rule not found' },
        }),
      },
    )
}

/** Returns one page of a project's email rules, newest first. */
export async function readRulePage(
  pool: Pool,
  filter: { projectId: string; limit: number; cursor: Cursor | null },
): Promise<Static<typeof RulePage>> {
  const found = await listRules(pool, { ...filter, limit: filter.limit + 1 })
  const { page, next } = cutPage(found, filter.limit, ({ createdAt }) => createdAt)
  return { rules: page.map(toItem), count: page.length, ...next }
}

/**
 * Adds an email rule. Adding the same email rule a second time changes nothing. @throws {ApiError} 400 for an invalid
 * address or too many rules, 409 if the address has a rule of the other type.
 */
export async function addRule(pool: Pool, projectId: string, body: Static<typeof RuleBody>) {
  const value = parseRuleValue(body.value)
  if (value === null) throw badRequest('value must be one email address, or *@ and a domain')
  try {
    const { rule, isNew } = await createRule(pool, projectId, { ...body, value })
    return { rule: toItem(rule), isNew }
  } catch (error) {
    if (error instanceof TooManyRulesError) {
      throw badRequest(`A project must have at most ${RULES_MAX} email rules`)
    }
    if (!(error instanceof RuleConflictError)) throw error
    throw conflict(`There is a rule of the other type for ${value} in the scope ${body.scope}`)
  }
}

/** Removes an email rule. @throws {ApiError} 404 for an unknown rule. */
export async function removeRule(pool: Pool, projectId: string, ruleId: string): Promise<void> {
  if (!(await deleteRule(pool, projectId, ruleId))) throw notFound('Rule not found')
}
