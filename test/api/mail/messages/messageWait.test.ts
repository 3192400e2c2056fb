/**
 * Tests that a call that waits for a message checks its API key again after it has begun to read events. A notification
 * about a changed key reaches only calls that already read events.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type EventFeed, startEventFeed } from '../../../../api/events/eventFeed.ts'
import { ApiError } from '../../../../api/http/errors.ts'
import { attachState, newRequestState, stateOf } from '../../../../api/http/requestState.ts'
import type { Services } from '../../../../api/http/services.ts'
import { waitForMessage } from '../../../../api/mail/messages/messageWaitRoutes.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let feed: EventFeed
beforeAll(async () => {
  database = await createTestDatabase()
  feed = startEventFeed(database.url, database.pool, silentLog)
})
afterAll(async () => {
  await feed.stop()
  await database[Symbol.asyncDispose]()
})

/**
 * Runs a call that waits for a message and whose access was already checked. `change` runs when the call checks the
 * access again.
 */
async function wait(has: 'code' | null, change: (request: Request) => void) {
  const projectId = await newProject(database.pool)
  const request = new Request('http://purser.test/v0/messages/wait')
  const opened: number[] = []
  const identity = {
    ...{ kind: 'project' as const, keyId: 'key', keyPrefix: 'loid-test', projectId },
    ...{ inboxAddress: 'a@purser.test', scopes: ['mail:read', 'mail:codes'] },
  }
  attachState(request, {
    ...newRequestState('req_test'),
    identity: identity as never,
    admitAgain: async () => {
      opened.push(feed.size())
      change(request)
    },
  })
  const services = { pool: database.pool, events: feed } as Services
  const result = waitForMessage(services, request, {
    ...{ filter: {}, has, timeoutMs: 50, signal: new AbortController().signal },
  })
  const outcome = await result.catch((error: unknown) => (error as ApiError).status)
  return { outcome, opened, left: feed.size() }
}

test('a call that waits for a message ends with 401 if its API key was revoked before the call began to read events', async () => {
  const ended = await wait(null, () => {
    throw new ApiError(401, 'unauthorized', 'Invalid API key')
  })
  expect(ended).toEqual({ outcome: 401, opened: [1], left: 0 })
})

test.each([
  ['mail:read', null],
  ['mail:read', 'code'],
  ['mail:codes', 'code'],
] as const)(
  'a wait ends with 403 if the key lost the scope %s before the event reader was open (has: %s)',
  async (lost, has) => {
    const ended = await wait(has, (request) => {
      const state = stateOf(request)
      const scopes = state.identity!.scopes.filter((scope) => scope !== lost)
      state.identity = { ...state.identity!, scopes }
    })
    expect(ended).toEqual({ outcome: 403, opened: [1], left: 0 })
  },
)

test('a call that waits for a message goes on if the caller keeps its scopes, and checks the scopes again at its end', async () => {
  expect(await wait('code', () => {})).toEqual({ outcome: null, opened: [1, 1], left: 0 })
})
