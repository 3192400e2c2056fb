/**
 * Tests that an operator who loses the role can no longer change the people, even by a request that already waits for a
 * database lock.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { signIn, signInAs } from '../../../support/console/consoleSession.ts'
import { changingBefore } from '../../../support/database/beforeStatement.ts'
import { startTestService, type TestService } from '../../../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

type Lost = Awaited<ReturnType<typeof signInAs>>

test.each<[string, (lost: Lost, other: Lost) => ReturnType<Lost['get']>]>([
  [
    'adds a person',
    (lost) =>
      lost.post('/people', {
        ...{ email: 'new@people.example', name: 'New', role: 'operator', projectIds: [] },
      }),
  ],
  [
    'gives a person the role operator',
    (lost, other) => lost.patch(`/people/${other.personId}`, { role: 'operator' }),
  ],
  ['removes a person', (lost, other) => lost.delete(`/people/${other.personId}`)],
])(
  'a request that %s is refused if its operator loses the role while the request waits for the table of people',
  async (_name, change) => {
    const first = await signIn(service)
    const other = await signInAs(service, 'viewer')
    const people = async () => (await first.get('/people')).body.people
    for (const [demote, status] of [
      [(id: string) => first.patch(`/people/${id}`, { role: 'viewer', projectIds: [] }), 403],
      [(id: string) => first.delete(`/people/${id}`), 401],
    ] as const) {
      const lost = await signInAs(service, 'operator')
      const before = (await people()).filter(({ personId }: any) => personId !== lost.personId)
      const answer = await changingBefore(
        'lock table people',
        () => demote(lost.personId),
        () => change(lost, other),
      )
      expect(answer.status).toBe(status)
      const after = (await people()).filter(({ personId }: any) => personId !== lost.personId)
      expect(after).toEqual(before)
    }
  },
)
