const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S

/** Whether mail goes to a smarthost, or to the hosts of its recipients' domains. */
export type MailRoute = 'relay' | 'direct'

type Schedule = {
  delaysS: readonly number[]
  /** A message that cannot be handed over is given up this long after it was accepted for sending. */
  giveUpS: number
  giveUpText: string
}

const SCHEDULES: Readonly<Record<MailRoute, Schedule>> = {
  // The smarthost has a queue of its own: here only its restarts and outages are bridged, and what it thinks of a
  // message after a day it will not think better of.
  relay: {
    delaysS: [15, MINUTE_S, 5 * MINUTE_S, 15 * MINUTE_S, 30 * MINUTE_S, HOUR_S, 2 * HOUR_S],
    giveUpS: 24 * HOUR_S,
    giveUpText: '24 h',
  },
  // RFC 5321 §4.5.4.1: at least 30 minutes, two attempts in the first hour, then every two or three hours, for four to
  // five days. The first is shorter, for greylisting asks for five minutes or so.
  direct: {
    delaysS: [5 * MINUTE_S, 30 * MINUTE_S, 30 * MINUTE_S, HOUR_S, 2 * HOUR_S, 3 * HOUR_S],
    giveUpS: 5 * 24 * HOUR_S,
    giveUpText: '5 days',
  },
}

/**
 * Seconds to wait after failed attempt number `attempt` (1 is the first) for a recipient, or null when the next attempt
 * would come too long after `ageS`, the seconds since the message was accepted.
 */
export function nextMailDelayS(route: MailRoute, attempt: number, ageS: number): number | null {
  const { delaysS, giveUpS } = SCHEDULES[route]
  const delayS = delaysS[Math.min(attempt, delaysS.length) - 1]!
  return ageS + delayS > giveUpS ? null : delayS
}

/** How long a message is tried, in words. */
export const mailGivenUpAfter = (route: MailRoute): string => SCHEDULES[route].giveUpText
