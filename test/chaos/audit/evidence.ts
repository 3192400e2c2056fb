/** The state at the end, as plain data from outside the service and from its database. */

export type ListedMessage = { messageId: string; subject: string; labels: string[] }

/** A message that the smarthost accepted. */
export type Sunk = {
  messageId: string
  to: string[]
  subject: string
  contentHash: string
  /** When the data of the message began, by performance.now(). */
  beganMs: number
}

/** The times when a worker that sends mail was killed, and when a connection to the smarthost was ended. */
type MailFaults = { killedMs: number[]; cutMs: number[] }

/** An authorization that the chain has seen used, and the transfer of the same transaction. */
export type UsedAuthorization = {
  nonce: string
  payer: string
  txHash: string
  /** Null when the transaction moved nothing from the payer. */
  amountAtomic: string | null
}

/** A purchase as the service stores the purchase. Amounts are in atomic units. */
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

/** The purse with its mandate, and the amount that the purse paid on the chain. */
type PurseEvidence = {
  address: string
  purchases: PurchaseRecord[]
  mandate: { limit: string; reserved: string; spent: string; released: string }
  /** The sum of the transfers from the address of the purse. */
  paidAtomic: string
}

/** A request that the webhook receiver got. */
export type Delivered = {
  path: string
  idempotencyKey: string
  event: string
  subjectId: string | null
  bodyHash: string
  genuine: boolean
  /** The status of the answer. Null until the whole answer was sent. */
  status: number | null
}

export type Evidence = {
  /** The messages of each inbox, by its address. */
  inboxes: Record<string, ListedMessage[]>
  sunk: Sunk[]
  /** The faults that can make a worker send a mail again. */
  mailFaults: MailFaults
  used: UsedAuthorization[]
  /** The number of transfers to the seller in all transactions. */
  transferCount: number
  /** The payments as the API lists them. */
  payments: { id: string; nonce: string; status: string; txHash: string | null }[]
  purse: PurseEvidence
  delivered: Delivered[]
  /** The value of each name of the vault; null when the name is absent. */
  vault: Record<string, string | null>
  /** The number of the newest event of each project, by its inbox. */
  newestEvent: Record<string, number>
  /** Delivery states of sent messages, by Message-ID. */
  deliveryStatus: Record<string, string>
  lockedJobs: string[]
  jobs: string[]
  /** Rows that are not done. `hasJob` says whether a job exists for the row. */
  openRows: { row: string; hasJob: boolean }[]
}
