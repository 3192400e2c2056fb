import { auditEvents } from './auditEvents.ts'
import { auditMailIn } from './auditMailIn.ts'
import { auditMailOut } from './auditMailOut.ts'
import { auditMoney } from './auditMoney.ts'
import { auditPurse } from './auditPurse.ts'
import { auditQueue } from './auditQueue.ts'
import { auditVault } from './auditVault.ts'
import { auditWebhooks } from './auditWebhooks.ts'
import type { Evidence } from './evidence.ts'
import type { Ledger } from './ledger.ts'

/**
 * Compares the ledger (the responses that clients got) with the evidence that was gathered from the service. Returns
 * the contradictions.
 * @returns one line of text for each contradiction.
 */
export function audit(ledger: Ledger, evidence: Evidence): string[] {
  return [
    ...auditMailIn(ledger, evidence),
    ...auditMailOut(ledger, evidence),
    ...auditMoney(ledger, evidence),
    ...auditPurse(ledger, evidence),
    ...auditVault(ledger, evidence),
    ...auditWebhooks(ledger, evidence),
    ...auditEvents(ledger, evidence),
    ...auditQueue(evidence),
    ...ledger.surprises.map((surprise) => `clients: ${surprise}`),
  ]
}
