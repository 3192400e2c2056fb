/** The sections of a report, and the tasks that look at them. */
import type { Finding } from '../../../shared/doctor/finding.ts'
import type { Section } from '../../../shared/doctor/report.ts'
import { secretsOf, withoutSecrets } from '../../../shared/doctor/secretsHidden.ts'
import type { TaskName } from '../../../shared/tasks.ts'
import { recordSection } from '../../../sql/operations/healthReports.ts'
import type { PoolContext, Task } from '../../queue/task.ts'
import { lookAtChain } from './chain.ts'
import { lookAtDatabase, lookAtSettings } from './database.ts'
import type { DoctorTools } from './look.ts'
import { lookAtMailIn } from './mailIn.ts'
import { lookAtMailOut } from './mailOut.ts'
import { askOutside } from './outside.ts'
import { lookAtPolicies } from './policies.ts'
import { DOMAINS_MAX, servedDomains } from './served.ts'
import { lookAtStorage } from './storage.ts'
import { lookAtWeb, lookAtWebhooks, webCertificate } from './web.ts'

const LOOKS: Record<Section, (tools: DoctorTools) => Promise<Finding[]>> = {
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
    const issuer = webCertificate(tools).then((certificate) => certificate?.issuer ?? '')
    const areas = [
      lookAtStorage(tools),
      lookAtMailIn(tools, served, outside),
      lookAtMailOut(tools, served, outside),
      lookAtPolicies(tools, served, issuer),
    ]
    return (await Promise.all(areas)).flat()
  },
  chain: lookAtChain,
}

/** Looks at one section. The findings hold no secret of the settings. */
export async function examine(section: Section, tools: DoctorTools): Promise<Finding[]> {
  return withoutSecrets(await LOOKS[section](tools), secretsOf(tools.config))
}

/** `examine` makes the tools of a worker, for each report anew: lookups of an earlier one are not kept. */
export type ExamineOptions = { examine: () => Omit<DoctorTools, 'database'> }

type ExamineTask = Extract<TaskName, `examine_${Section}`>

const examineTask =
  <Name extends ExamineTask>(section: Section) =>
  ({ pool }: PoolContext, options: ExamineOptions): Task<Name> =>
  async ({ reportId }) => {
    const findings = await examine(section, { ...options.examine(), database: { pool } })
    await recordSection(pool, { reportId, section, findings })
  }

/** Looks at settings, database, BASE_URL and webhooks. */
export const createExamineService = examineTask<'examine_service'>('service')
/** Looks at mail in and out, with its DNS. */
export const createExamineMail = examineTask<'examine_mail'>('mail')
/** Looks at the chain and the gas wallets. */
export const createExamineChain = examineTask<'examine_chain'>('chain')
