/**
 * Holds the PostgreSQL channel on which the service announces changes that HTTP requests wait for. An announcement
 * holds the id of a payment, a check or a credential use. The channel keeps the name `payments_changed`, because
 * processes of release 0.1.0 use it.
 */
export const CHANGES_CHANNEL = 'payments_changed'
