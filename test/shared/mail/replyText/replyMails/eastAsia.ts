/** Holds test mails in the forms of QQ, 163, Foxmail, Naver and Daum. */
import { broken, chosen, fill, quoted, type ReplyMail } from './build.ts'

const qq = (form: 'zh' | 'en'): ReplyMail => {
  const { body, original } = chosen('zh:short')
  const head =
    form === 'zh'
      ? '------------------ 原始邮件 ------------------\n发件人: "{n}" <{e}>;\n发送时间: 2026年3月3日(星期二) 上午9:14\n收件人: "agent"<agent@inbox.example>;\n主题: Re: 2026-118'
      : '------------------ Original ------------------\nFrom: "{n}"<{e}>;\nDate: Tue, Mar 3, 2026 09:14 AM\nTo: "agent"<agent@inbox.example>;\nSubject: Re: 2026-118'
  return {
    id: `qq-text-${form}`,
    text: `${body}\n\n\n\n\n${fill('zh', head)}\n\n\n\n${original}`,
    expected: body,
    tier: 'core',
  }
}

const qqHtml: ReplyMail = {
  id: 'qq-html',
  html: fill(
    'zh',
    `<div>${broken(chosen('zh:long').body)}</div><div><br></div><div style="font-size: 12px;font-family: Arial Narrow;padding:2px 0 2px 0;">------------------&nbsp;原始邮件&nbsp;------------------</div><div style="font-size: 12px;background:#efefef;padding:8px;"><div><b>发件人:</b>&nbsp;"{n}"&nbsp;&lt;{e}&gt;;</div><div><b>发送时间:</b>&nbsp;2026年3月3日(星期二) 上午9:14</div><div><b>收件人:</b>&nbsp;"agent"&lt;agent@inbox.example&gt;;</div><div><b>主题:</b>&nbsp;Re: 2026-118</div></div><div><br></div><div>${broken(chosen('zh').original)}</div>`,
  ),
  expected: chosen('zh:long').body,
  tier: 'policy',
}

const netease = (language: string, head: string): ReplyMail => {
  const { body, original } = chosen(`${language}:short`)
  return {
    id: `netease-text-${language}`,
    text: `${body}\n\n\n\n\n${fill(language, head)}\n\n${quoted(original, '>')}\n`,
    expected: body,
    tier: 'core',
  }
}

const neteasePlain: ReplyMail = {
  id: 'netease-foxmail',
  text: fill(
    'zh',
    `${chosen('zh').body}\n\n\n\n王小明\nxiaoming@yinshua.example\n \n发件人： {n}\n发送时间： 2026-03-03 09:14\n收件人： agent\n主题： Re: 2026-118\n${chosen('zh').original}\n`,
  ),
  expected: chosen('zh').body,
  alt: [`${chosen('zh').body}\n\n王小明\nxiaoming@yinshua.example`],
  tier: 'policy',
}

const naver: ReplyMail = {
  id: 'naver-text',
  text: fill(
    'ko',
    `${chosen('ko').body}\n\n-----Original Message-----\nFrom: "{n}"<{e}>\nTo: <agent@inbox.example>;\nCc:\nSent: 2026-03-03 (화) 09:14:00 (GMT+09:00)\nSubject: Re: 2026-118\n\n${chosen('ko').original}\n`,
  ),
  expected: chosen('ko').body,
  tier: 'core',
}

const daum: ReplyMail = {
  id: 'daum-text',
  text: fill(
    'ko',
    `${chosen('ko').body}\n\n--------- 원본 메일 ---------\n보낸사람: {a}\n받는사람: <agent@inbox.example>\n날짜: 26.03.03 09:14 GMT +0900\n제목: Re: 2026-118\n\n${chosen('ko').original}\n`,
  ),
  expected: chosen('ko').body,
  tier: 'core',
}

export const eastAsia: ReplyMail[] = [
  qq('zh'),
  qq('en'),
  qqHtml,
  netease('zh', '在 2026-03-03 09:14:00，"{n}" <{e}> 写道：'),
  netease('en', 'At 2026-03-03 09:14:00, "{n}" <{e}> wrote:'),
  neteasePlain,
  naver,
  daum,
]
