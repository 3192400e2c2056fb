import type { Evidence } from './evidence.ts'
import type { Ledger, VaultName, VaultRead, VaultWrite } from './ledger.ts'

/** Sets within how many milliseconds a vault write can still take effect after its call ended without a response. */
export const LATE_WRITE_MS = 20_000

/**
 * Checks that each read of the vault returned a value that was possible at the time of the read. Also checks the final
 * content of the vault.
 */
export function auditVault({ vault }: Ledger, evidence: Evidence): string[] {
  return vault.flatMap((entry) => {
    const { name, reads, writes } = entry
    const atEnd = evidence.vault[name]
    const last: VaultRead[] =
      atEnd === undefined
        ? []
        : [{ value: atEnd, startMs: Number.POSITIVE_INFINITY, endMs: Number.POSITIVE_INFINITY }]
    const refused = writes.filter(({ told }) => told === 'refused')
    return [
      ...refused.map(() => `vault: a write to ${name} was refused`),
      ...auditReads(entry, reads, 'was'),
      ...auditReads(entry, last, 'is in the end'),
    ]
  })
}

function auditReads(entry: VaultName, reads: readonly VaultRead[], verb: string): string[] {
  return reads.flatMap((read) => {
    if (mayBe(entry.writes, read)) return []
    return [
      `vault: ${entry.name} ${verb} ${read.value ?? 'absent'}, which was overwritten or never written`,
    ]
  })
}

/**
 * Tells whether a vault read may return a value. The value must have been written before the end of the read, and no
 * later write may have ended before the start of the read.
 */
function mayBe(writes: readonly VaultWrite[], { value, startMs, endMs }: VaultRead): boolean {
  // Before the first write of a name, the vault contained no secret of this name.
  const first: VaultWrite = {
    value: null,
    startMs: Number.NEGATIVE_INFINITY,
    endMs: Number.NEGATIVE_INFINITY,
    told: 'accepted',
  }
  return [first, ...writes].some((write) => {
    if (write.value !== value || write.told === 'refused' || write.startMs > endMs) return false
    const doneMs = write.told === 'accepted' ? write.endMs : write.endMs + LATE_WRITE_MS
    return !writes.some(
      (later) =>
        later.told === 'accepted' &&
        later.value !== value &&
        later.startMs >= doneMs &&
        later.endMs <= startMs,
    )
  })
}
