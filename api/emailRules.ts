import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { encodeCursor } from '../shared/cursor.ts'
import { parseRuleValue, RULE_SCOPES, RULE_TYPES } from '../shared/emailRules.ts'
import {
  createRule,
  deleteRule,
  listRules,
  RULES_MAX,
  RuleConflictError,
  type StoredRule,
  TooManyRulesError,
} from '../sql/emailRules.ts'
import { projectOf, type Services } from './context.ts'
import { badRequest, conflict, notFound } from './errors.ts'
import { operation, PageQuery, Time } from './operation.ts'
import { readPage } from './page.ts'

const RuleType = t.Union(RULE_TYPES.map((type) => t.Literal(type)))
const RuleScope = t.Union(RULE_SCOPES.map((scope) => t.Literal(scope)))

const RuleBody = t.Object({
  type: RuleType,
  scope: RuleScope,
  value: t.String({
    maxLength: 256,
    description: 'An address, or *@ and a domain.',
    examples: ['*@example.com'],
  }),
})

const RuleItem = t.Object({
  id: t.String(),
  type: RuleType,
  scope: RuleScope,
  value: t.String(),
  createdAt: Time,
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

/** Whom an inbox hears, writes to and answers. */
export function emailRuleRoutes({ pool }: Services) {
  return new Elysia()
    .get(
      '/v0/email-rules',
      async ({ request, query }) => {
        const { limit, cursor } = readPage(query)
        const { projectId } = projectOf(request)
        const found = await listRules(pool, { projectId, limit: limit + 1, cursor })
        const page = found.slice(0, limit)
        const last = page.at(-1)
        const answer = { rules: page.map(toItem), count: page.length }
        if (found.length <= limit || last === undefined) return answer
        const nextPageToken = encodeCursor({ atMs: last.createdAt.getTime(), row: last.row })
        return { ...answer, nextPageToken }
      },
      {
        query: PageQuery,
        detail: operation({
          summary: 'List email rules, newest first',
          tag: 'Rules',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'One page of rules.',
            schema: t.Object({
              rules: t.Array(RuleItem),
              count: t.Integer(),
              nextPageToken: t.Optional(t.String()),
            }),
            example: { rules: [EXAMPLE], count: 1 },
          },
        }),
      },
    )
    .post(
      '/v0/email-rules',
      async ({ request, body, set }) => {
        const value = parseRuleValue(body.value)
        if (value === null) {
          throw badRequest('value must be one email address, or *@ and a domain')
        }
        try {
          const { projectId } = projectOf(request)
          const { rule, isNew } = await createRule(pool, projectId, { ...body, value })
          set.status = isNew ? 201 : 200
          return toItem(rule)
        } catch (error) {
          if (error instanceof TooManyRulesError) {
            throw badRequest(`A project must have at most ${RULES_MAX} email rules`)
          }
          if (!(error instanceof RuleConflictError)) throw error
          throw conflict(
            `There is a rule of the other type for ${value} in the scope ${body.scope}`,
          )
        }
      },
      {
        body: RuleBody,
        detail: operation({
          summary: 'Add an email rule',
          description:
            'RECEIVE is enforced when mail arrives, SEND and REPLY when it is sent. A rule for an address counts before one for ' +
            'its domain. Where a scope has an ALLOW rule, whoever no rule names is refused. The same rule again is answered ' +
            '200 and changes nothing.',
          tag: 'Rules',
          access: 'mail:manage',
          requestExample: { type: 'BLOCK', scope: 'RECEIVE', value: '*@example.com' },
          success: { status: 201, description: 'The rule.', schema: RuleItem, example: EXAMPLE },
          errors: { 409: 'A rule of the other type names the same in the same scope' },
        }),
      },
    )
    .delete(
      '/v0/email-rules/:ruleId',
      async ({ request, params }) => {
        if (!(await deleteRule(pool, projectOf(request).projectId, params.ruleId))) {
          throw notFound('Rule not found')
        }
        return new Response(null, { status: 204 })
      },
      {
        params: t.Object({ ruleId: t.String({ minLength: 1, maxLength: 64 }) }),
        detail: operation({
          summary: 'Delete an email rule',
          tag: 'Rules',
          access: 'mail:manage',
          success: { status: 204, description: 'The rule is gone.' },
          errors: { 404: 'Rule not found' },
        }),
      },
    )
}
