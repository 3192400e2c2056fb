/** Masks answers for `createAnswerMasker`, which kills this process when one takes too much. */
import { serveParent } from '../process/child.ts'
import { maskedAnswer, type ReceivedAnswer } from './maskedAnswer.ts'

serveParent(({ answer, secrets }: { answer: ReceivedAnswer; secrets: string[] }) =>
  maskedAnswer(answer, secrets),
)
