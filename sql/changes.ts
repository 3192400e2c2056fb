/**
 * Holds the PostgreSQL channel on which the service announces the id of a payment, a check or a use whose state
 * changed. HTTP requests wait for the change that is announced on this channel. The channel has this name because
 * processes of release 0.1.0 know it by this name.
 */
export const CHANGES_CHANNEL = 'payments_changed'
