/** The answers that clients got, as plain data that the auditor compares with the evidence. */

/**
 * The outcome of an operation as its client knows the outcome. `unknown` means that no attempt was answered, so the
 * service may have done the operation.
 */
export type Told = 'accepted' | 'refused' | 'unknown'

/** A message that a client delivered by SMTP. */
export type MailIn = {
  messageId: string
  inbox: string
  subject: string
  told: Told
  /** The reply that refused the message. */
  refusal: string | null
  attempts: number
  /** Labels that were added, and whether the service accepted each label. */
  labels: { label: string; told: Told }[]
  /** Whether the client deleted the message. */
  deleted: Told | null
  /** Whether a client waited for the message, and the Message-ID of the answer. */
  waited: { told: Told; messageId: string | null } | null
}

/** A message that a client sent over the API. The subject names the message. */
export type MailOut = {
  token: string
  key: string
  sender: string
  remote: string[]
  local: string[]
  /** The Message-ID of the message that this message answers. */
  inReplyTo: string | null
  told: Told
  refusal: string | null
  /** The Message-ID of every answer. */
  messageIds: string[]
}

/** One answer to a redeem. */
export type RedeemAnswer = {
  key: string
  ok: boolean
  reason: string | null
  paymentId: string | null
  txHash: string | null
}

/** A payment that a client signed. */
export type Paid = {
  nonce: string
  payer: string
  amountAtomic: string
  told: Told
  answers: RedeemAnswer[]
}

/** A purchase that an agent asked for with one key. */
export type Bought = {
  key: string
  told: Told
  /** The id of every answer. */
  purchaseIds: string[]
  /** The refusal of the API itself. */
  refusal: string | null
}

/** A write to one name of the vault. `value` is null for a deletion. */
export type VaultWrite = {
  value: string | null
  startMs: number
  endMs: number
  told: Told
}

/** A read of one name of the vault. */
export type VaultRead = { value: string | null; startMs: number; endMs: number }

export type VaultName = { name: string; writes: VaultWrite[]; reads: VaultRead[] }

/** The events of one project, as a listener heard them. */
export type Listener = { inbox: string; heard: Heard[] }
type Heard = { id: string; type: string; subjectId: string | null }

export type Ledger = {
  mailsIn: MailIn[]
  mailsOut: MailOut[]
  payments: Paid[]
  purchases: Bought[]
  vault: VaultName[]
  listeners: Listener[]
  /** Answers that no client may get, under any fault. */
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
