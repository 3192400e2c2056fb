/**
 * Is the PostgreSQL channel for the id of a payment, a check or a use whose state changed. HTTP requests wait for the
 * change. Processes of release 0.1.0 know the channel by this name.
 */
export const CHANGES_CHANNEL = 'payments_changed'
