/** Describes the settings of a project that the operator changes: limits and retention. */
import { Type as t } from '@sinclair/typebox'
import { RETENTION_CLASSES, type RetentionClass } from '../../shared/retention.ts'

/**
 * Keeps body fields that no schema names. Otherwise Elysia would drop these fields, and a misspelt setting would change
 * nothing instead of causing an error.
 */
export const KEEPS_UNKNOWN = { additionalProperties: true }

/** Limits sizes to whole bytes that PostgreSQL and JSON both store exactly. */
const BYTES_MAX = 2 ** 50
const COUNT_MAX = 2 ** 50
export const Limits = t.Object(
  {
    storageBytes: t.Optional(
      t.Union([t.Integer({ minimum: 0, maximum: BYTES_MAX }), t.Null()], {
        error: "be a number of bytes, or null for the service's limit",
        description: "Bytes of mail that the project may store; null: the service's limit.",
      }),
    ),
    dailySettlements: t.Optional(
      t.Union([t.Integer({ minimum: 0, maximum: COUNT_MAX }), t.Null()], {
        error: "be a number of payments, or null for the service's limit",
        description: "Payments that the project may claim in a UTC day; null: the service's limit.",
      }),
    ),
    dailyGas: t.Optional(
      t.Union([t.Integer({ minimum: 0, maximum: COUNT_MAX }), t.Null()], {
        error: "be an amount of gas, or null for the service's limit",
        description:
          "Gas that its transactions may use in a UTC day; beyond it nothing is claimed. Null: the service's limit.",
      }),
    ),
    dailyTextBytes: t.Optional(
      t.Union([t.Integer({ minimum: 0, maximum: BYTES_MAX }), t.Null()], {
        error: "be a number of bytes, or null for the service's limit",
        description:
          "Bytes of attachments whose text is read in a UTC day; the others wait for the next. Null: the service's limit.",
      }),
    ),
    dailyTextSeconds: t.Optional(
      t.Union([t.Integer({ minimum: 0, maximum: COUNT_MAX }), t.Null()], {
        error: "be a number of seconds, or null for the service's limit",
        description:
          "Processor seconds that reading attachments may take in a UTC day; null: the service's limit.",
      }),
    ),
  },
  KEEPS_UNKNOWN,
)

const Days = (name: RetentionClass) => {
  const { about, min, max } = RETENTION_CLASSES[name]
  return t.Optional(
    t.Union([t.Integer({ minimum: min, maximum: max }), t.Null()], {
      error: `be a number of days, ${min} to ${max}, or null for the service's`,
      description: `Days to keep ${about}: ${min} to ${max}. Null: as the service says.`,
    }),
  )
}
export const RetentionInput = t.Object(
  {
    mail: Days('mail'),
    rawMail: Days('rawMail'),
    deliveries: Days('deliveries'),
    logs: Days('logs'),
    idempotencyKeys: Days('idempotencyKeys'),
    paymentDetails: Days('paymentDetails'),
  },
  KEEPS_UNKNOWN,
)

const KeptDays = (name: RetentionClass) =>
  t.Union([t.Integer(), t.Null()], {
    description: `Days that it keeps ${RETENTION_CLASSES[name].about}; null: for ever.`,
  })
export const RetentionSchema = t.Object({
  mail: KeptDays('mail'),
  rawMail: KeptDays('rawMail'),
  deliveries: KeptDays('deliveries'),
  logs: KeptDays('logs'),
  idempotencyKeys: KeptDays('idempotencyKeys'),
  paymentDetails: KeptDays('paymentDetails'),
})
