/**
 * Describes as plain data the state at the end of a chaos run, as the outside systems and the service's database show
 * it.
 */

export type ListedMessage = { messageId: string; subject: string; labels: string[] }

/** Describes a message that the smarthost of the test accepted. */
export type Sunk = {
  messageId: string
  to: string[]
  subject: string
  contentHash: string
  /** Holds the time at which the transfer of the SMTP message began, in milliseconds of performance.now(). */
  beganMs: number
}

/**
 * Holds two lists of times: when a mail worker was killed, and when a connection to the smarthost was broken.
 */
type MailFaults = { killedMs: number[]; cutMs: number[] }

/** Describes an EIP-3009 authorization that was used on the chain, and the transfer in the same transaction. */
export type UsedAuthorization = {
  nonce: string
  payer: string
  txHash: string
  /** Holds the amount that was transferred. If the amount is null, the transaction moved no money from the payer. */
  amountAtomic: string | null
}

/** Describes a purchase in the form in which the service stores it. Amounts are in atomic units. */
export type PurchaseRecord = {
  id: string
  key: string
  state: string
  ended: boolean
  money: 'open' | 'spent' | 'released' | null
  nonce: string | null
  amountAtomic: string | null
  txHash: string | null
}

/** Describes the purse (wallet) with its mandate (spending limit), and the amount that the purse paid on the chain. */
type PurseEvidence = {
  address: string
  purchases: PurchaseRecord[]
  mandate: { limit: string; reserved: string; spent: string; released: string }
  /** Holds the total of the transfers on the chain from the address of the purse. */
  paidAtomic: string
}

/** Describes a request that the webhook receiver of the test got. */
export type Delivered = {
  path: string
  idempotencyKey: string
  event: string
  subjectId: string | null
  bodyHash: string
  genuine: boolean
  /**
   * Holds the HTTP status of the webhook receiver's response. If the status is null, the receiver has not sent the
   * whole response yet.
   */
  status: number | null
}

export type Evidence = {
  /** Maps the address of each inbox to its messages. */
  inboxes: Record<string, ListedMessage[]>
  sunk: Sunk[]
  /** Holds the injected faults after which a worker may send the same mail again. */
  mailFaults: MailFaults
  used: UsedAuthorization[]
  /** Holds the number of USDC transfers to the seller in all transactions together. */
  transferCount: number
  /** Lists the payments that the service’s API returns. */
  payments: { id: string; nonce: string; status: string; txHash: string | null }[]
  purse: PurseEvidence
  delivered: Delivered[]
  /** Maps each name in the vault to the stored value. If the value is null, the vault has no secret of this name. */
  vault: Record<string, string | null>
  /** Maps the inbox of each project to the sequence number of the project's newest event. */
  newestEvent: Record<string, number>
  /** Maps the Message-ID of each sent message to its delivery status. */
  deliveryStatus: Record<string, string>
  lockedJobs: string[]
  jobs: string[]
  /**
   * Lists the database rows whose work is not finished. `hasJob` tells whether the queue has a job for the row.
   */
  openRows: { row: string; hasJob: boolean }[]
}
