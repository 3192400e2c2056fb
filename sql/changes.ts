/**
 * Notified with the id of a payment, a check or a use whose state changed: requests wait for it. Processes of release 0.1.0 know
 * the channel by this name.
 */
export const CHANGES_CHANNEL = 'payments_changed'
