/** Defines for how many days the service keeps the rows of each retention class. */

/**
 * Sets the maximum number of retention days. The maximum of a hundred years means in practice that the service keeps
 * rows for ever.
 */
export const DAYS_MAX = 36_500

type Bounds = {
  /**
   * Holds the name of the retention class in the database columns. The column for the number of days has this name and
   * the ending `_days`.
   */
  column: string
  /** Describes, in words for the clients of the API, which rows the retention class removes. */
  about: string
  min: number
  max: number
  /**
   * Holds the number of days that applies if neither the operator nor the project has set a number. Null means that the
   * service keeps the rows for ever.
   */
  fallback: number | null
}

/** Lists the retention classes. When a row reaches the age of its retention class, the service removes the row. */
export const RETENTION_CLASSES = {
  mail: {
    column: 'mail',
    about: 'messages, with their originals and attachments,',
    min: 1,
    max: DAYS_MAX,
    fallback: null,
  },
  rawMail: {
    column: 'raw_mail',
    about: 'the originals of messages (the parsed messages stay)',
    min: 1,
    max: DAYS_MAX,
    fallback: null,
  },
  deliveries: {
    column: 'deliveries',
    about: 'ended webhook deliveries, with their attempts,',
    min: 1,
    max: DAYS_MAX,
    fallback: null,
  },
  // The audit log stays for at least 30 days. Otherwise a person with a stolen platform key could set a short retention
  // time to erase all traces.
  logs: {
    column: 'logs',
    about: 'entries of the audit log',
    min: 30,
    max: DAYS_MAX,
    fallback: 90,
  },
  // Clients rely on idempotency keys for 24 hours (docs/contract.md). Therefore the service keeps the keys for at least
  // one day.
  idempotencyKeys: {
    column: 'idempotency_keys',
    about: 'idempotency keys, with their answers,',
    min: 1,
    max: 30,
    fallback: 1,
  },
  // The details of a payment stay for at least seven days, because a payer who lost the response may send the same
  // payment header again for some days.
  paymentDetails: {
    column: 'payment_details',
    about: 'the signature, description and query of final payments',
    min: 7,
    max: DAYS_MAX,
    fallback: null,
  },
} as const satisfies Record<string, Bounds>

export type RetentionClass = keyof typeof RETENTION_CLASSES
/** Lists the names of all retention classes. */
export const RETENTION_NAMES = Object.keys(RETENTION_CLASSES) as RetentionClass[]

/**
 * Holds the number of days for which the service keeps the rows of each retention class. Null means either that the
 * service keeps the rows for ever, or that the default applies. The description of each field with this type states the
 * meaning of null.
 */
export type Retention = Record<RetentionClass, number | null>
