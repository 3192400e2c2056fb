/**
 * Masks responses for `createAnswerMasker`, which kills this process if a response takes too much time or memory to
 * mask.
 */
import { serveParent } from '../process/child.ts'
import { maskedAnswer, type ReceivedAnswer } from './maskedAnswer.ts'

serveParent(({ answer, secrets }: { answer: ReceivedAnswer; secrets: string[] }) =>
  maskedAnswer(answer, secrets),
)
