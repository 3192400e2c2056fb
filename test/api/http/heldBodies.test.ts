import { expect, test } from 'bun:test'
import { HeldBodies } from '../../../api/http/heldBodies.ts'
import { newRequestState } from '../../../api/http/requestState.ts'

const MB = 1024 * 1024
const request = () => newRequestState('req_test')

test('bodies past 256 MB together are asked to come back, until others are answered', () => {
  const bodies = new HeldBodies()
  const [first, second] = [request(), request()]
  bodies.hold(first, 200 * MB)
  bodies.hold(second, 56 * MB)
  const crowded = expect.objectContaining({ status: 503, code: 'unavailable' })
  expect(() => bodies.hold(second, 1)).toThrow(crowded)
  bodies.release(first)
  bodies.hold(second, 200 * MB)
  expect(() => bodies.hold(request(), 1)).toThrow(crowded)
  bodies.release(second)
  bodies.release(second)
  bodies.hold(request(), 256 * MB)
})
