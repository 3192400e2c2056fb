/**
 * Holds the PostgreSQL channel on which the service announces a change of state. The announcement holds the id of a
 * payment, a check or a credential use. HTTP requests wait for an announcement on this channel. The channel keeps the
 * name `payments_changed`, because processes of release 0.1.0 use this name.
 */
export const CHANGES_CHANNEL = 'payments_changed'
