/** Defines for how many days the service keeps the rows of each retention class. */

/**
 * Sets the maximum number of retention days. The maximum of a hundred years means in practice that the service keeps
 * rows for ever.
 */
export const DAYS_MAX = 36_500

type Bounds = {
  /**
   * Holds the name of this retention class in the database: the name of its columns for the days, without the ending
   * `_days`.
   */
  column: string
  /** Describes in the words of the API which rows the retention class removes. */
  about: string
  min: number
  max: number
  /**
   * Holds the number of days that applies if neither the operator nor the project sets a number. Null means that the
   * service keeps the rows for ever.
   */
  fallback: number | null
}

/** Lists the retention classes. The service removes the rows of a retention class at a certain age. */
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
  // The minimum is 30 days, so that a person with a stolen platform key cannot erase all traces by a short retention
  // time.
  logs: {
    column: 'logs',
    about: 'entries of the audit log',
    min: 30,
    max: DAYS_MAX,
    fallback: 90,
  },
  // Clients rely on the service to remember idempotency keys for 24 hours (docs/contract.md).
  idempotencyKeys: {
    column: 'idempotency_keys',
    about: 'idempotency keys, with their answers,',
    min: 1,
    max: 30,
    fallback: 1,
  },
  // The minimum is seven days, because a payer who lost the response may send the same payment header again for some
  // days.
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
 * Holds, for each retention class, the number of days for which the service keeps the rows. Null means either that the
 * service keeps the rows for ever, or that the default applies. The field with this type tells which of the two
 * meanings null has.
 */
export type Retention = Record<RetentionClass, number | null>
