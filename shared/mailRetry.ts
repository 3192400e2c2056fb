const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S

/** A message that cannot be handed over is given up this long after it was accepted for sending. */
const MAIL_GIVE_UP_S = 24 * HOUR_S

/**
 * Delays between attempts to send a mail. The first are short, for greylisting and restarts of the smarthost; then the
 * half hours and hours of RFC 5321 §4.5.4.1.
 */
const MAIL_DELAYS_S = [
  15,
  MINUTE_S,
  5 * MINUTE_S,
  15 * MINUTE_S,
  30 * MINUTE_S,
  HOUR_S,
  2 * HOUR_S,
] as const

/**
 * Seconds to wait after failed attempt number `attempt` (1 is the first), or null when the next attempt would come
 * later than 24 h after `ageS`, the seconds since the message was accepted.
 */
export function nextMailDelayS(attempt: number, ageS: number): number | null {
  const delayS = MAIL_DELAYS_S[Math.min(attempt, MAIL_DELAYS_S.length) - 1]!
  return ageS + delayS > MAIL_GIVE_UP_S ? null : delayS
}
