import { Type as t } from '@sinclair/typebox'
import { recordChange } from '../../account/changeEntries.ts'
import {
  addRule,
  RuleBody,
  RuleItem,
  RulePage,
  readRulePage,
  removeRule,
} from '../../mail/emailRuleRoutes.ts'
import {
  readSuppressions,
  removeSuppression,
  SuppressionPage,
} from '../../mail/outbound/suppressionRoutes.ts'
import { moreText, PageInput, pageOf } from './mailTools.ts'
import { defineTool, READS, STRICT, type Tool } from './tool.ts'
import { UNTRUSTED_SERVER, UntrustedMark } from './untrusted.ts'

const CHANGES = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
} as const

const listRules = defineTool({
  name: 'mail.list_rules',
  title: 'List email rules',
  description:
    'Lists the rules for the addresses that this inbox accepts mail from (RECEIVE), sends to (SEND) and replies to (REPLY), newest first. Use it to see why mail does not arrive or is refused, and to find the id of a rule. Answers rules, count, and nextPageToken if there are more. Example: {"limit":20}',
  scope: 'mail:read',
  input: t.Object({ ...PageInput }, STRICT),
  output: RulePage,
  hints: READS,
  async run({ services, projectId }, input) {
    const page = await readRulePage(services.pool, { projectId, ...pageOf(input) })
    const lines = page.rules.map((rule) => `${rule.id} ${rule.type} ${rule.scope} ${rule.value}`)
    return { data: page, text: [`${page.count} rules.${moreText(page)}`, ...lines].join('\n') }
  },
})

const addRuleTool = defineTool({
  name: 'mail.add_rule',
  title: 'Add an email rule',
  description:
    'Allows or blocks an address, or a whole domain as *@domain, in one scope: RECEIVE, SEND or REPLY. A rule for an address overrides a rule for its domain. A scope with an ALLOW rule refuses every address without a rule. Use it when you are asked to block an address, or to accept only some. Answers the rule. Example: {"type":"BLOCK","scope":"RECEIVE","value":"*@spam.example"}',
  scope: 'mail:manage',
  input: t.Object(RuleBody.properties, STRICT),
  output: RuleItem,
  hints: CHANGES,
  fixes: { conflict: 'Delete the rule of the other type first: mail.list_rules has its id.' },
  async run({ services, projectId, caller }, input) {
    const change = { action: 'email_rule.create', subject: null }
    const rule = await recordChange(services, caller, change, async () => {
      return (await addRule(services.pool, projectId, input)).rule
    })
    return { data: rule, text: `${rule.id}: ${rule.type} ${rule.scope} ${rule.value}.` }
  },
})

const deleteRuleTool = defineTool({
  name: 'mail.delete_rule',
  title: 'Delete an email rule',
  description:
    'Deletes a rule of mail.list_rules. Mail that the rule refused is lost. Answers the id. Example: {"ruleId":"rul_0a1b2c3d4e5f60718293a4b5"}',
  scope: 'mail:manage',
  input: t.Object({ ruleId: t.String({ minLength: 1, maxLength: 64 }) }, STRICT),
  output: t.Object({ ruleId: t.String(), deleted: t.Boolean() }),
  hints: { ...CHANGES, destructiveHint: true },
  fixes: { not_found: 'Take ruleId from mail.list_rules.' },
  async run({ services, projectId, caller }, { ruleId }) {
    const change = { action: 'email_rule.delete', subject: ruleId }
    await recordChange(services, caller, change, () => removeRule(services.pool, projectId, ruleId))
    return { data: { ruleId, deleted: true }, text: `${ruleId} is deleted.` }
  },
})

const listSuppressions = defineTool({
  name: 'mail.list_suppressions',
  title: 'List suppressed addresses',
  description:
    'Lists the suppressed addresses of this inbox, newest first. No mail is sent to them: they bounced permanently, or their server reported an unknown mailbox. Use it to see why a recipient was refused. Answers suppressions with the reason and the reply of the server, count, and nextPageToken if there are more. Example: {"limit":20}',
  scope: 'mail:read',
  input: t.Object({ ...PageInput }, STRICT),
  output: t.Composite([SuppressionPage, UntrustedMark]),
  hints: READS,
  async run({ services, projectId }, input) {
    const page = await readSuppressions(services.pool, { projectId, ...pageOf(input) })
    const lines = page.suppressions.map(({ address, reason }) => `${address} (${reason})`)
    return {
      data: { ...page, ...UNTRUSTED_SERVER },
      text: [`${page.count} suppressed addresses.${moreText(page)}`, ...lines].join('\n'),
    }
  },
})

const removeSuppressionTool = defineTool({
  name: 'mail.remove_suppression',
  title: 'Remove a suppression',
  description:
    'Removes an address from the list of mail.list_suppressions: mail can be sent to it again. Use it only when you know that the mailbox exists again: mail to dead addresses harms the reputation of the sender. Answers the address. Example: {"address":"ada@example.com"}',
  scope: 'mail:manage',
  input: t.Object({ address: t.String({ minLength: 3, maxLength: 320 }) }, STRICT),
  output: t.Object({ address: t.String(), removed: t.Boolean() }),
  hints: CHANGES,
  fixes: { not_found: 'Take the address from mail.list_suppressions.' },
  async run({ services, projectId, caller }, { address }) {
    const change = { action: 'suppression.delete', subject: address }
    await recordChange(services, caller, change, () =>
      removeSuppression(services.pool, projectId, address),
    )
    return { data: { address, removed: true }, text: `Mail can be sent to ${address} again.` }
  },
})

/** Lists the MCP tools for email rules and suppressions. */
export const ruleTools: readonly Tool[] = [
  listRules,
  addRuleTool,
  deleteRuleTool,
  listSuppressions,
  removeSuppressionTool,
]
