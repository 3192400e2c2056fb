/** How long the rows of each class are kept. */

/** A number of days a hundred years long keeps rows for ever. */
export const DAYS_MAX = 36_500

type Bounds = {
  /** The name of its columns, without `_days`. */
  column: string
  /** What it removes, in the words of the API. */
  about: string
  min: number
  max: number
  /** Days without a setting; null: for ever. */
  fallback: number | null
}

/** The classes of rows that age removes. */
export const RETENTION_CLASSES = {
  mail: {
    column: 'mail',
    about: 'messages with their originals and attachments',
    min: 1,
    max: DAYS_MAX,
    fallback: null,
  },
  rawMail: {
    column: 'raw_mail',
    about: 'originals of messages; the parsed message stays',
    min: 1,
    max: DAYS_MAX,
    fallback: null,
  },
  deliveries: {
    column: 'deliveries',
    about: 'ended webhook deliveries with their attempts',
    min: 1,
    max: DAYS_MAX,
    fallback: null,
  },
  // A stolen platform key must not erase its traces by a short retention.
  logs: {
    column: 'logs',
    about: 'entries of the audit log',
    min: 30,
    max: DAYS_MAX,
    fallback: 90,
  },
  // Clients rely on 24 hours (docs/contract.md).
  idempotencyKeys: {
    column: 'idempotency_keys',
    about: 'idempotency keys with their answers',
    min: 1,
    max: 30,
    fallback: 1,
  },
  // A payer who lost the answer asks again with the same header for some days.
  paymentDetails: {
    column: 'payment_details',
    about: 'signature, description and query of final payments',
    min: 7,
    max: DAYS_MAX,
    fallback: null,
  },
} as const satisfies Record<string, Bounds>

export type RetentionClass = keyof typeof RETENTION_CLASSES
/** Every class. */
export const RETENTION_NAMES = Object.keys(RETENTION_CLASSES) as RetentionClass[]

/** Days by class; null: for ever, or as the service says. */
export type Retention = Record<RetentionClass, number | null>
