/**
 * Describes the answers that clients got, as plain data that the auditor compares with the evidence from the service.
 */

/**
 * Describes the outcome of an operation as far as its client knows it. `unknown` means that no attempt got a response,
 * so the service may or may not have done the operation.
 */
export type Told = 'accepted' | 'refused' | 'unknown'

/** Describes a message that a client delivered by SMTP. */
export type MailIn = {
  messageId: string
  inbox: string
  subject: string
  told: Told
  /**
   * Holds the SMTP reply with which the listener refused the message. If the reply is null, the listener did not refuse
   * the message.
   */
  refusal: string | null
  attempts: number
  /** Lists the labels that the client added, and whether the service accepted each label. */
  labels: { label: string; told: Told }[]
  /** Holds the outcome of the client's request to delete the message. */
  deleted: Told | null
  /**
   * Holds the outcome of the client's wait for the message, and the Message-ID. Null means that the client did not wait
   * for the message.
   */
  waited: { told: Told; messageId: string | null } | null
}

/**
 * Describes a message that a client sent over the API. The subject identifies the message, because it contains a unique
 * word.
 */
export type MailOut = {
  token: string
  key: string
  sender: string
  remote: string[]
  local: string[]
  /** Holds the Message-ID of the answered message if this message is a reply. */
  inReplyTo: string | null
  told: Told
  refusal: string | null
  /** Lists the Message-IDs in the responses to one send request and its repetitions. */
  messageIds: string[]
}

/** Describes one response of the service to a redeem request (which takes a payment). */
export type RedeemAnswer = {
  key: string
  ok: boolean
  reason: string | null
  paymentId: string | null
  txHash: string | null
}

/** Describes a payment that a client signed. */
export type Paid = {
  nonce: string
  payer: string
  amountAtomic: string
  told: Told
  answers: RedeemAnswer[]
}

/** Describes a purchase that an agent requested with one Idempotency-Key, perhaps several times. */
export type Bought = {
  key: string
  told: Told
  /** Lists the purchase ids in the responses to one purchase request and its repetitions. */
  purchaseIds: string[]
  /** Holds the error with which the API refused the purchase. If the error is null, the API accepted the purchase. */
  refusal: string | null
}

/** Describes a write of one name in the vault. If `value` is null, the write is a deletion. */
export type VaultWrite = {
  value: string | null
  startMs: number
  endMs: number
  told: Told
}

/** Describes one read of a vault secret, with the returned value and the times at which the call began and ended. */
export type VaultRead = { value: string | null; startMs: number; endMs: number }

export type VaultName = { name: string; writes: VaultWrite[]; reads: VaultRead[] }

/** Holds the events of one project, in the order in which a listener received them. */
export type Listener = { inbox: string; heard: Heard[] }
type Heard = { id: string; type: string; subjectId: string | null }

export type Ledger = {
  mailsIn: MailIn[]
  mailsOut: MailOut[]
  payments: Paid[]
  purchases: Bought[]
  vault: VaultName[]
  listeners: Listener[]
  /** Lists responses that a client got but that no client may get under any fault. */
  surprises: string[]
}

export const newLedger = (): Ledger => ({
  mailsIn: [],
  mailsOut: [],
  payments: [],
  purchases: [],
  vault: [],
  listeners: [],
  surprises: [],
})
