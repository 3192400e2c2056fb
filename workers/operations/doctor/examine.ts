/** The tasks that look at the sections of a report. */
import type { Finding } from '../../../shared/doctor/finding.ts'
import type { Section } from '../../../shared/doctor/report.ts'
import { secretsOf, withoutSecrets } from '../../../shared/doctor/secretsHidden.ts'
import type { TaskName } from '../../../shared/tasks.ts'
import { recordSection } from '../../../sql/operations/healthReports.ts'
import type { PoolContext, Task } from '../../queue/task.ts'
import type { DoctorTools } from './look.ts'

/** Looks at one section. The findings hold no secret of the settings. */
export async function examine(section: Section, tools: DoctorTools): Promise<Finding[]> {
  const { LOOKS } = await import('./sections.ts')
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
