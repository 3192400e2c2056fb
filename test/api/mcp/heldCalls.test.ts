import { expect, test } from 'bun:test'
import { heldCalls } from '../../../api/mcp/ownerLink.ts'

const [old, next] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
const callsWith = (...stateKeys: Uint8Array[]) =>
  heldCalls({
    services: { stateKeys },
    caller: { keyPrefix: 'loid-1' },
    projectId: 'prj_1',
  } as never)

test('after a key rotation, the service accepts the state of an MCP call signed with the old key, as long as the old key stays configured', async () => {
  const held = { call: 'digest', data: {} }
  const state = await callsWith(old, next).mint(held, {} as never)
  expect(await callsWith(next, old).verify(state, {} as never)).toEqual(held)
  await expect(callsWith(next).verify(state, {} as never)).rejects.toThrow('mac')
})
