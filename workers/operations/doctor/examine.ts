/** Creates the tasks that examine the sections of the doctor's report (the result of the self-check). */
import type { Finding } from '../../../shared/doctor/finding.ts'
import type { Section } from '../../../shared/doctor/report.ts'
import { secretsOf, withoutSecrets } from '../../../shared/doctor/secretsHidden.ts'
import type { TaskName } from '../../../shared/tasks.ts'
import { recordSection } from '../../../sql/operations/healthReports.ts'
import type { PoolContext, Task } from '../../queue/task.ts'
import type { DoctorTools } from './look.ts'

/**
 * Examines one section of the doctor's report (the result of the self-check). The findings of the section contain no
 * secret from the settings.
 */
export async function examine(section: Section, tools: DoctorTools): Promise<Finding[]> {
  const { LOOKS } = await import('./sections.ts')
  return withoutSecrets(await LOOKS[section](tools), secretsOf(tools.config))
}

/**
 * Holds the settings of the tasks that examine the service for the doctor (the self-check). The function `examine`
 * creates new tools for each report of the doctor (the self-check), so that no report reuses the DNS lookups of an
 * earlier report.
 */
export type ExamineOptions = { examine: () => Omit<DoctorTools, 'database'> }

type ExamineTask = Extract<TaskName, `examine_${Section}`>

const examineTask =
  <Name extends ExamineTask>(section: Section) =>
  ({ pool }: PoolContext, options: ExamineOptions): Task<Name> =>
  async ({ reportId }) => {
    const findings = await examine(section, { ...options.examine(), database: { pool } })
    await recordSection(pool, { reportId, section, findings })
  }

/** Examines the settings, the database, BASE_URL and webhooks. */
export const createExamineService = examineTask<'examine_service'>('service')
/** Examines inbound and outbound mail, and the DNS records that mail needs. */
export const createExamineMail = examineTask<'examine_mail'>('mail')
/** Examines the chain and the gas wallets. */
export const createExamineChain = examineTask<'examine_chain'>('chain')
