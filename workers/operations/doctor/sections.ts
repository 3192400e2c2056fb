/**
 * Holds the checks of each section of the doctor's report (the result of the self-check). The code of the checks is
 * loaded only for the first report, because reports are rare.
 */
import type { Finding } from '../../../shared/doctor/finding.ts'
import type { Section } from '../../../shared/doctor/report.ts'
import { lookAtChain } from './chain.ts'
import { lookAtDatabase, lookAtSettings } from './database.ts'
import type { DoctorTools } from './look.ts'
import { listenerIssuer, lookAtListeners, lookAtMailIn } from './mailIn.ts'
import { lookAtMailOut } from './mailOut.ts'
import { askOutside } from './outside.ts'
import { lookAtPolicies } from './policies.ts'
import { DOMAINS_MAX, servedDomains } from './served.ts'
import { lookAtStorage } from './storage.ts'
import { lookAtWeb, lookAtWebhooks, webCertificate } from './web.ts'

/** Examines a section of the doctor's report (the result of the self-check) and returns the findings. */
export const LOOKS: Record<Section, (tools: DoctorTools) => Promise<Finding[]>> = {
  async service(tools) {
    const outside = askOutside(tools)
    const areas = [
      lookAtSettings(tools, outside),
      lookAtDatabase(tools),
      lookAtWeb(tools, webCertificate(tools)),
      lookAtWebhooks(tools, outside),
    ]
    return (await Promise.all(areas)).flat()
  },
  async mail(tools) {
    const outside = askOutside(tools)
    const states = { states: ['verified'], limit: DOMAINS_MAX } as const
    const served = await servedDomains(tools.config, tools.database.pool, states)
    const listeners = lookAtListeners(tools)
    const issuers = {
      web: webCertificate(tools).then((certificate) => certificate?.issuer ?? ''),
      mail: listeners.then(listenerIssuer),
    }
    const areas = [
      lookAtStorage(tools),
      lookAtMailIn(tools, served, { outside, listeners }),
      lookAtMailOut(tools, served, outside),
      lookAtPolicies(tools, served, issuers),
    ]
    return (await Promise.all(areas)).flat()
  },
  chain: lookAtChain,
}
