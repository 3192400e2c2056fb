/** Tests the proof that a person has signed in with a browser before. */
import { expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import { browserProofs } from '../../../shared/people/browserProof.ts'

const key = (id: string, fill: number) => ({ id, key: createSecretKey(Buffer.alloc(32, fill)) })
const ADA = 'ada@example.com'

test('a proof holds for its own email address only, and only under a master key of the service', () => {
  const proofs = browserProofs([key('one', 1)])
  const proof = proofs.prove(ADA)
  expect(proof).toMatch(/^[\w-]{43}$/)
  expect(proofs.isProof(ADA, proof)).toBe(true)
  expect(proofs.isProof('eve@example.com', proof)).toBe(false)
  expect(proofs.isProof(ADA, '')).toBe(false)
  expect(proofs.isProof(ADA, proof.slice(1))).toBe(false)
  expect(browserProofs([key('two', 2)]).isProof(ADA, proof)).toBe(false)
})

test('a proof still holds after a new master key was put first', () => {
  const proof = browserProofs([key('one', 1)]).prove(ADA)
  expect(browserProofs([key('two', 2), key('one', 1)]).isProof(ADA, proof)).toBe(true)
})
