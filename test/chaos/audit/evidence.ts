/** Describes the state at the end of a chaos run, as plain data from outside the service and from its database. */

export type ListedMessage = { messageId: string; subject: string; labels: string[] }

/** Is a message that the smarthost accepted. */
export type Sunk = {
  messageId: string
  to: string[]
  subject: string
  contentHash: string
  /** Is the time when the data of the SMTP message began, in milliseconds of performance.now(). */
  beganMs: number
}

/** Holds the times when a mail worker was killed, and when a connection to the smarthost was ended. */
type MailFaults = { killedMs: number[]; cutMs: number[] }

/** Is an authorization that is used on the chain, with the transfer of the same transaction. */
export type UsedAuthorization = {
  nonce: string
  payer: string
  txHash: string
  /** Is the transferred amount. Null means that the transaction moved no money from the payer. */
  amountAtomic: string | null
}

/** Is a purchase as the service stores the purchase. Amounts are in atomic units. */
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

/** Describes the purse with its mandate, and the amount that the purse paid on the chain. */
type PurseEvidence = {
  address: string
  purchases: PurchaseRecord[]
  mandate: { limit: string; reserved: string; spent: string; released: string }
  /** Is the sum of the transfers from the address of the purse. */
  paidAtomic: string
}

/** Is a request that the webhook receiver got. */
export type Delivered = {
  path: string
  idempotencyKey: string
  event: string
  subjectId: string | null
  bodyHash: string
  genuine: boolean
  /**
   * Is the HTTP status that the webhook receiver answered. Null means that the receiver has not sent the whole answer
   * yet.
   */
  status: number | null
}

export type Evidence = {
  /** Maps the address of each inbox to the messages of the inbox. */
  inboxes: Record<string, ListedMessage[]>
  sunk: Sunk[]
  /** Holds the faults that can make a worker send a mail again. */
  mailFaults: MailFaults
  used: UsedAuthorization[]
  /** Is the number of transfers to the seller in all transactions. */
  transferCount: number
  /** Lists the payments that the service’s API returns. */
  payments: { id: string; nonce: string; status: string; txHash: string | null }[]
  purse: PurseEvidence
  delivered: Delivered[]
  /** Maps each name of the vault to its value. Null means that the name is absent. */
  vault: Record<string, string | null>
  /** Maps the inbox of each project to the number of the project's newest event. */
  newestEvent: Record<string, number>
  /** Maps the Message-ID of each sent message to the delivery status. */
  deliveryStatus: Record<string, string>
  lockedJobs: string[]
  jobs: string[]
  /** Lists the rows with unfinished work. `hasJob` tells whether a job exists for the row. */
  openRows: { row: string; hasJob: boolean }[]
}
