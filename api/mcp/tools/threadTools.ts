import { Type as t } from '@sinclair/typebox'
import {
  readThread,
  readThreads,
  THREAD_MESSAGES_DEFAULT,
  THREAD_MESSAGES_MAX,
  ThreadPage,
  ThreadParams,
  WholeThread,
} from '../../mail/messages/threadRoutes.ts'
import { messageBlock } from './mailText.ts'
import { moreText, PageInput, pageOf } from './mailTools.ts'
import { defineTool, READS, STRICT, type Tool } from './tool.ts'
import { fence, UNTRUSTED, UntrustedMark } from './untrusted.ts'

const listThreads = defineTool({
  name: 'mail.list_threads',
  title: 'List conversations',
  description:
    'Lists the conversations of this inbox, the most recently updated first, without their messages. Use it for an overview, or to find a threadId for mail.get_thread. Answers threads (threadId, subject, messageCount, createdAt, updatedAt), count, and nextPageToken if there are more. Example: {"limit":20}',
  scope: 'mail:read',
  input: t.Object(PageInput, STRICT),
  output: t.Composite([ThreadPage, UntrustedMark]),
  hints: READS,
  async run({ services, request, projectId }, input) {
    const page = await services.reads.run(request, ({ pool }) =>
      readThreads(pool, { projectId, ...pageOf(input) }),
    )
    const lines = page.threads.map(
      (thread) =>
        `${thread.threadId} | ${thread.updatedAt} | ${thread.messageCount} messages | ${thread.subject.replace(/\s+/g, ' ')}`,
    )
    const head = `${page.count} threads, the most recently updated first.${moreText(page)}`
    return {
      data: { ...page, ...UNTRUSTED },
      text: lines.length === 0 ? head : `${head}\n${fence(lines.join('\n'))}`,
    }
  },
})

const getThread = defineTool({
  name: 'mail.get_thread',
  title: 'Read a conversation',
  description: `Reads a conversation with its messages, oldest first. Use it before mail.reply when earlier messages matter. Answers totalMessages and the newest ${THREAD_MESSAGES_DEFAULT} messages; limit changes that number. Example: {"threadId":"thd_0a1b2c3d4e5f60718293a4b5","limit":10}`,
  scope: 'mail:read',
  input: t.Object(
    {
      ...ThreadParams.properties,
      limit: t.Optional(
        t.Integer({
          minimum: 1,
          maximum: THREAD_MESSAGES_MAX,
          default: THREAD_MESSAGES_DEFAULT,
          description: 'Maximum number of newest messages.',
        }),
      ),
    },
    STRICT,
  ),
  output: t.Composite([WholeThread, UntrustedMark]),
  hints: READS,
  fixes: { not_found: 'Take threadId from mail.list_threads or from a message.' },
  async run({ services, projectId }, { threadId, limit = THREAD_MESSAGES_DEFAULT }) {
    const thread = await readThread(services, { projectId, threadId, limit })
    return {
      data: { ...thread, ...UNTRUSTED },
      text: `${thread.messages.length} of ${thread.totalMessages} messages of ${thread.threadId}, oldest first.\n${fence(thread.messages.map(messageBlock).join('\n\n---\n\n'))}`,
    }
  },
})

/** Lists the MCP tools for conversations. */
export const threadTools: readonly Tool[] = [listThreads, getThread]
