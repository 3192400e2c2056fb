const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S

/**
 * Names the route of outgoing mail. On the route `relay`, a smarthost sends the mail. On the route `direct`, this
 * service sends the mail to the MX hosts of the recipients' domains.
 */
export type MailRoute = 'relay' | 'direct'

type Schedule = {
  delaysS: readonly number[]
  /**
   * Holds the number of seconds after which the service gives up an outbound mail. The time begins when the API accepts
   * the mail.
   */
  giveUpS: number
  giveUpText: string
}

const SCHEDULES: Readonly<Record<MailRoute, Schedule>> = {
  // The smarthost has its own queue of mail for the recipients' mail hosts. Therefore this service retries only until
  // the smarthost accepts the mail.
  relay: {
    delaysS: [15, MINUTE_S, 5 * MINUTE_S, 15 * MINUTE_S, 30 * MINUTE_S, HOUR_S, 2 * HOUR_S],
    giveUpS: 24 * HOUR_S,
    giveUpText: '24 h',
  },
  // RFC 5321 §4.5.4.1 asks for delivery attempts at least 30 minutes apart, for four to five days. It allows two
  // attempts in the first hour and then one attempt every two or three hours. The first delay of this schedule is
  // shorter than 30 minutes, because greylisting hosts ask for about five minutes.
  direct: {
    delaysS: [5 * MINUTE_S, 30 * MINUTE_S, 30 * MINUTE_S, HOUR_S, 2 * HOUR_S, 3 * HOUR_S],
    giveUpS: 5 * 24 * HOUR_S,
    giveUpText: '5 days',
  },
}

/**
 * Returns the number of seconds to wait after the failed attempt number `attempt` (counted from 1) to send a mail to a
 * recipient. Null means that the service gives up the mail.
 * @param ageS is the number of seconds since the API accepted the mail.
 */
export function nextMailDelayS(route: MailRoute, attempt: number, ageS: number): number | null {
  const { delaysS, giveUpS } = SCHEDULES[route]
  const delayS = delaysS[Math.min(attempt, delaysS.length) - 1]!
  return ageS + delayS > giveUpS ? null : delayS
}

/** Returns the time after which the service gives up a mail, in words. */
export const mailGivenUpAfter = (route: MailRoute): string => SCHEDULES[route].giveUpText
