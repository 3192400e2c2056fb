/**
 * Describes the answers that clients got, as plain data that the auditor compares with the evidence from the service.
 */

/**
 * Describes the outcome of an operation as its client knows the outcome. The value `unknown` means that no attempt got
 * a response, so the service may or may not have done the operation.
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
  /** Tells the outcome of the client's request to delete the message. */
  deleted: Told | null
  /**
   * If a client waited for the message, holds the outcome of this wait, and the Message-ID. If this field is null, no
   * client waited for the message.
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
  /** If this message is a reply, holds the Message-ID of the answered message. */
  inReplyTo: string | null
  told: Told
  refusal: string | null
  /** Lists the Message-ID that each answer to the send request contains. */
  messageIds: string[]
}

/** Describes one answer of the service to a redeem request. */
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
  /** Lists the purchase id that each answer to the purchase request contains. */
  purchaseIds: string[]
  /** Holds the error with which the API refused the purchase. If the error is null, the API accepted the purchase. */
  refusal: string | null
}

/** Describes a write to one name in the vault. If `value` is null, the write is a deletion. */
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
  /** Lists answers of the service that no client may get under any fault, but that a client got. */
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
