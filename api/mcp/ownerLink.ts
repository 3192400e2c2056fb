/**
 * Handles mail that waits for the owner's approval, if the MCP host can show a link to the owner (MCP 2026-07-28,
 * elicitation in URL mode). The link leads to the console, where the owner must sign in. Therefore the link alone gives
 * nobody access. After the owner's decision, the host repeats the tool call that sent the mail. The service then sends
 * no second mail, but its response tells the decision.
 */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import {
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  type InputRequiredResult,
  inputRequired,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { type Approval, findApprovalOf } from '../../sql/account/approvals.ts'
import { requestHash } from '../http/input/idempotencyKey.ts'
import { findTool } from './naming.ts'
import type { Connection } from './server.ts'
import { acceptedText } from './tools/mailTools.ts'

/**
 * Describes a tool call that waits for the owner. It holds a digest of the call, and the response for clients without
 * URL elicitation.
 */
export type HeldCall = { call: string; data: Record<string, unknown> }

/**
 * Sets for how many seconds a client may repeat a held call. The owner has up to 30 days for the decision
 * (`approvalHours`). The day after that lets a host that was switched off learn of it.
 */
const STATE_SECONDS = 31 * 24 * 3_600

const digest = (name: string, args: unknown): string =>
  requestHash([name, args]).toString('base64url')

/**
 * Authenticates the state that an MCP client carries from one call to the next. The service accepts this state only
 * from a caller with the same API key.
 */
export const heldCalls = (connection: Connection): RequestStateCodec<HeldCall> => {
  const { services, caller, projectId } = connection
  const [first, ...others] = services.stateKeys.map((key) =>
    createRequestStateCodec<HeldCall>({
      key,
      ttlSeconds: STATE_SECONDS,
      bind: () => `${projectId} ${caller.keyPrefix}`,
    }),
  )
  return {
    mint: first!.mint,
    async verify(state, context) {
      try {
        return await first!.verify(state, context)
      } catch (error) {
        for (const other of others) {
          const held = await other.verify(state, context).catch(() => null)
          if (held !== null) return held
        }
        throw error
      }
    },
  }
}

/**
 * Returns a response with the link for the owner, if the mail waits for an approval and the MCP host can show a link.
 * Otherwise it returns `null`, and the caller gets the tool's result.
 */
export async function linkForOwner(
  connection: Connection,
  {
    name,
    args,
    result,
    context,
  }: {
    name: string
    args: unknown
    result: CallToolResult
    context: ServerContext
  },
): Promise<InputRequiredResult | null> {
  const data = result.structuredContent
  // Only a tool that sends mail needs a link for the owner. A tool that reads or labels a held mail (a mail that waits
  // for approval) also returns this mail, but sends nothing.
  if (!findTool(name)?.hints.openWorldHint) return null
  if (data?.deliveryStatus !== 'held' || !showsLinks(context)) return null
  const approval = await findHeld(connection, data)
  if (approval?.state !== 'waiting') return null
  const { baseUrl } = connection.services.config.http
  const { text: _, extractedText: __, ...kept } = data
  const held: HeldCall = { call: digest(name, args), data: kept }
  return inputRequired({
    inputRequests: {
      approval: inputRequired.elicitUrl({
        url: `${baseUrl}/console#/projects/${connection.projectId}/approvals/${approval.id}`,
        message:
          'This mail waits for the owner of the project. The page shows it, and asks for a decision.',
      }),
    },
    requestState: await heldCalls(connection).mint(held, context),
  })
}

/** Returns the response to a repeated tool call, which tells the owner's decision about the mail. */
export async function afterOwner(
  connection: Connection,
  { name, args, held }: { name: string; args: unknown; held: HeldCall },
): Promise<CallToolResult> {
  if (held.call !== digest(name, args)) {
    return refusal('requestState must come with the arguments that it was given for')
  }
  const { deliveryStatus, ...sent } = held.data
  const state = (await findHeld(connection, sent))?.state
  if (state === 'waiting') return answer({ ...sent, deliveryStatus })
  if (state === 'approved') {
    const labels = (sent.labels as string[]).filter((label) => label !== 'held')
    if (Date.parse(String(sent.sendAt)) > Date.now()) {
      return answer({ ...sent, labels: [...labels, 'scheduled'], deliveryStatus: 'scheduled' })
    }
    return answer({ ...sent, labels })
  }
  return refusal(`The mail is ${state ?? 'gone'} and is not sent. Do not send it again unasked`)
}

const findHeld = (
  { services, projectId }: Connection,
  { messageId }: Record<string, unknown>,
): Promise<Approval | null> =>
  findApprovalOf(services.pool, { projectId, kind: 'mail', subject: String(messageId) })

const answer = (data: Record<string, unknown>): CallToolResult => ({
  content: [{ type: 'text', text: acceptedText(data as Parameters<typeof acceptedText>[0]) }],
  structuredContent: data,
})

const refusal = (text: string): CallToolResult => ({
  content: [{ type: 'text', text: `conflict: ${text}.` }],
  isError: true,
})

/**
 * Tells whether the MCP host declares that it can show links. A host with an empty `elicitation` capability can show
 * only forms.
 */
function showsLinks({ mcpReq }: ServerContext): boolean {
  const envelope = mcpReq.envelope as Record<string, unknown> | undefined
  const declared = envelope?.[CLIENT_CAPABILITIES_META_KEY] as
    | { elicitation?: { url?: unknown } }
    | undefined
  return typeof declared?.elicitation?.url === 'object' && declared.elicitation.url !== null
}
