/** Holds the phrases of a replying writer and of the author of the earlier mail, in thirty languages. */
export type Phrases = {
  me: string
  them: string
  /** Holds the address of the person who wrote the earlier mail. */
  from: string
  /** Holds the new text of the reply in a short form without a greeting. */
  short: string
  /** Holds the new text of the reply with a greeting, sign-off and name, all of which belong to the reply text. */
  long: string
  /** Holds the text of the earlier mail that the reply quotes. */
  original: string
}

export const PHRASES: Record<string, Phrases> = {
  en: {
    me: 'Owen Hale',
    them: 'Laura Whitfield',
    from: 'laura.whitfield@harbour-print.example',
    short:
      'On Thursday works. Please send both boxes to the back door: the lift at the front is broken.',
    long: 'Hi Laura,\n\nThe second quote is fine. From next week we need 40 copies a day, not 25.\n\nTo be clear: paper stays the same.\n\nBest regards,\nOwen',
    original:
      'Hello Owen,\n\nwe can deliver on Thursday or Friday. Which door shall we use?\n\nKind regards\nLaura Whitfield\nHarbour Print',
  },
  de: {
    me: 'Jonas Brandt',
    them: 'Katrin Vogel',
    from: 'katrin.vogel@tischlerei-vogel.example',
    short: 'Am Donnerstag passt es mir gut. Bitte klingeln Sie bei Brandt, 3. Stock links.',
    long: 'Hallo Frau Vogel,\n\ndas Angebot nehmen wir an. Von den Regalen brauchen wir allerdings sechs statt vier.\n\nViele Grüße\nJonas Brandt',
    original:
      'Guten Tag Herr Brandt,\n\nwir könnten am Donnerstag oder am Freitag liefern. Was passt Ihnen besser?\n\nMit freundlichen Grüßen\nKatrin Vogel',
  },
  fr: {
    me: 'Élise Marchand',
    them: 'Benoît Caron',
    from: 'b.caron@atelier-caron.example',
    short: 'Le devis me convient, merci. Pouvez-vous passer jeudi à 14 h plutôt que vendredi ?',
    long: "Bonjour Benoît,\n\nJe confirme la commande de douze chaises. De mon côté, l'acompte part aujourd'hui.\n\nBien cordialement,\nÉlise",
    original:
      'Bonjour Madame,\n\nVoici le devis demandé. Je peux passer jeudi ou vendredi.\n\nCordialement,\nBenoît Caron',
  },
  es: {
    me: 'Marta Ibáñez',
    them: 'Rodrigo Peña',
    from: 'rodrigo@imprentapena.example',
    short: 'El jueves nos viene bien. ¿Puedes traer también las muestras en papel reciclado?',
    long: 'Hola Rodrigo:\n\nAceptamos el presupuesto. De momento serían 300 carteles y 50 folletos.\n\nUn saludo,\nMarta',
    original:
      'Hola Marta:\n\nTe mando el presupuesto de los carteles. Podemos entregar el jueves.\n\nSaludos,\nRodrigo',
  },
  pt: {
    me: 'Beatriz Lopes',
    them: 'Caio Menezes',
    from: 'caio@graficamenezes.example',
    short: 'Em princípio fechamos com a segunda opção. Consegue entregar até quinta?',
    long: 'Olá, Caio,\n\nO orçamento foi aprovado. Para a primeira semana bastam 20 caixas.\n\nAbraços,\nBeatriz',
    original:
      'Boa tarde, Beatriz,\n\nSegue o orçamento com as duas opções que conversamos.\n\nAtenciosamente,\nCaio Menezes',
  },
  it: {
    me: 'Giulia Ferri',
    them: 'Paolo Conti',
    from: 'paolo.conti@falegnameriaconti.example',
    short:
      'Il preventivo va bene. Da parte nostra possiamo pagare metà subito e metà alla consegna.',
    long: 'Ciao Paolo,\n\nconfermo i sei tavoli. A giovedì allora, verso le 15.\n\nUn caro saluto,\nGiulia',
    original:
      'Gentile Giulia,\n\nle invio il preventivo per i tavoli. Restiamo a disposizione.\n\nCordiali saluti\nPaolo Conti',
  },
  nl: {
    me: 'Sanne de Wit',
    them: 'Bram Jansen',
    from: 'bram@drukkerijjansen.example',
    short: 'Op donderdag is er iemand aanwezig. Van mij mag het ook een dag later.',
    long: 'Hoi Bram,\n\nDe offerte is akkoord. Aan het aantal verandert niets: 75 stuks.\n\nGroetjes,\nSanne',
    original:
      'Beste Sanne,\n\nHierbij de offerte. We kunnen donderdag leveren.\n\nMet vriendelijke groet,\nBram Jansen',
  },
  pl: {
    me: 'Zofia Wilk',
    them: 'Marek Sowa',
    from: 'm.sowa@drukarniasowa.example',
    short: 'Od czwartku możemy odbierać paczki. Proszę dzwonić do portierni, tel. w załączniku.',
    long: 'Dzień dobry,\n\nakceptujemy ofertę. Do końca miesiąca potrzebujemy 200 sztuk.\n\nPozdrawiam serdecznie\nZofia',
    original:
      'Szanowna Pani,\n\nprzesyłam ofertę na druk. Dostawa możliwa w czwartek.\n\nZ poważaniem\nMarek Sowa',
  },
  ru: {
    me: 'Ирина Белова',
    them: 'Павел Громов',
    from: 'gromov@tipografia-n.example',
    short: 'От вас нужен только счёт. Кому его отправить в бухгалтерии, я напишу отдельно.',
    long: 'Павел, добрый день!\n\nМакет утвердили, можно печатать 500 штук.\n\nС уважением,\nИрина',
    original:
      'Здравствуйте, Ирина!\n\nПрисылаю макет на согласование. Срок печати два дня.\n\nС уважением,\nПавел Громов',
  },
  uk: {
    me: 'Олена Коваль',
    them: 'Тарас Мельник',
    from: 't.melnyk@drukarnia.example',
    short: 'Від четверга склад працює до шостої. Кому дзвонити, якщо водій запізниться?',
    long: 'Вітаю, Тарасе!\n\nМакет гарний, друкуйте сто примірників.\n\nЗ повагою,\nОлена',
    original: 'Добрий день, Олено!\n\nНадсилаю макет. Чи можна друкувати?\n\nЗ повагою,\nТарас',
  },
  cs: {
    me: 'Eva Horáková',
    them: 'Petr Dvořák',
    from: 'dvorak@tiskarna-dvorak.example',
    short: 'Od čtvrtka jsme na dovolené, zboží prosím předejte sousedům v přízemí.',
    long: 'Dobrý den, pane Dvořáku,\n\nnabídku přijímáme. Komu máme poslat zálohu?\n\nS pozdravem\nEva Horáková',
    original:
      'Dobrý den,\n\nzasílám nabídku na tisk. Dodání ve čtvrtek.\n\nS pozdravem\nPetr Dvořák',
  },
  sk: {
    me: 'Lucia Kováčová',
    them: 'Ján Hudák',
    from: 'hudak@tlaciaren.example',
    short: 'Ďakujem, cena je v poriadku. Do piatku pošleme objednávku aj s adresou.',
    long: 'Dobrý deň,\n\npotvrdzujem 80 kusov v bielej farbe.\n\nS pozdravom\nLucia',
    original: 'Dobrý deň,\n\nposielam cenovú ponuku.\n\nS pozdravom\nJán Hudák',
  },
  sv: {
    me: 'Elin Sandberg',
    them: 'Oskar Nyström',
    from: 'oskar@nystromtryck.example',
    short: 'Den blå varianten blir bra. Skicka gärna fakturan till ekonomiavdelningen.',
    long: 'Hej Oskar,\n\nVi tar 150 exemplar. Från och med maj behöver vi dubbelt så många.\n\nHälsningar\nElin',
    original:
      'Hej Elin,\n\nHär kommer förslaget, i blått och i grönt.\n\nVänliga hälsningar\nOskar',
  },
  nb: {
    me: 'Ingrid Solberg',
    them: 'Lars Haugen',
    from: 'lars@haugentrykk.example',
    short: 'Fra torsdag er vi på kontoret igjen. Til da kan du ringe meg på mobilen.',
    long: 'Hei Lars,\n\nTilbudet er godkjent. Send ordrebekreftelse når du kan.\n\nVennlig hilsen\nIngrid',
    original: 'Hei Ingrid,\n\nVedlagt følger tilbudet.\n\nMvh\nLars',
  },
  da: {
    me: 'Mette Holm',
    them: 'Søren Kjær',
    from: 'soren@kjaertryk.example',
    short: 'Den sidste prøve er perfekt. Til gengæld mangler vi stadig en dato for levering.',
    long: 'Hej Søren\n\nVi siger ja tak til tilbuddet på 90 stk.\n\nMed venlig hilsen\nMette',
    original: 'Hej Mette\n\nHer er tilbuddet og tre prøver.\n\nVenlig hilsen\nSøren',
  },
  fi: {
    me: 'Aino Lehtonen',
    them: 'Mikko Salmi',
    from: 'mikko.salmi@painosalmi.example',
    short: 'Torstai sopii hyvin. Voitteko tuoda laatikot suoraan varastoon klo 10 mennessä?',
    long: 'Hei Mikko,\n\nhyväksymme tarjouksen. Tarvitsemme 60 kappaletta.\n\nYstävällisin terveisin\nAino',
    original: 'Hei Aino,\n\nohessa tarjous. Toimitus onnistuu torstaina.\n\nTerveisin\nMikko',
  },
  hu: {
    me: 'Nagy Eszter',
    them: 'Szabó Gábor',
    from: 'szabo.gabor@nyomda-szabo.example',
    short: 'A csütörtök megfelel. Kérem, a számlát a cég nevére állítsák ki.',
    long: 'Kedves Gábor!\n\nAz ajánlatot elfogadjuk, 120 darabot kérünk.\n\nÜdvözlettel,\nEszter',
    original:
      'Kedves Eszter!\n\nKüldöm az ajánlatot, csütörtökön tudunk szállítani.\n\nÜdvözlettel,\nSzabó Gábor',
  },
  ro: {
    me: 'Ioana Munteanu',
    them: 'Andrei Popa',
    from: 'andrei.popa@tipografiapopa.example',
    short: 'De joi suntem din nou la birou. Către cine trimitem comanda semnată?',
    long: 'Bună ziua,\n\nOferta este acceptată, avem nevoie de 45 de bucăți.\n\nCu stimă,\nIoana',
    original: 'Bună ziua,\n\nVă trimit oferta. Putem livra joi.\n\nCu respect,\nAndrei Popa',
  },
  el: {
    me: 'Ελένη Ράπτη',
    them: 'Νίκος Βασιλείου',
    from: 'nikos@typografeio.example',
    short: 'Από την Πέμπτη είμαστε πάλι στο γραφείο. Προς το παρόν κρατήστε τα κουτιά εκεί.',
    long: 'Καλημέρα Νίκο,\n\nη προσφορά εγκρίθηκε, θέλουμε 70 τεμάχια.\n\nΜε εκτίμηση,\nΕλένη',
    original: 'Καλημέρα σας,\n\nσας στέλνω την προσφορά.\n\nΕυχαριστώ,\nΝίκος',
  },
  tr: {
    me: 'Elif Aydın',
    them: 'Murat Şahin',
    from: 'murat@sahinmatbaa.example',
    short: 'Perşembe günü uygundur. Kutuları arka kapıya bırakabilir misiniz?',
    long: 'Merhaba Murat Bey,\n\nTeklifi kabul ediyoruz, 85 adet istiyoruz.\n\nSaygılarımla,\nElif',
    original:
      'Merhaba Elif Hanım,\n\nTeklif ektedir. Perşembe teslim edebiliriz.\n\nİyi çalışmalar,\nMurat',
  },
  vi: {
    me: 'Trần Thu Hà',
    them: 'Nguyễn Minh Khoa',
    from: 'khoa@incongty.example',
    short: 'Vào thứ Năm thì được. Anh gửi giúp em hóa đơn trước nhé.',
    long: 'Chào anh Khoa,\n\nBên em đồng ý báo giá, đặt 110 bản.\n\nTrân trọng,\nThu Hà',
    original: 'Chào chị Hà,\n\nEm gửi chị báo giá in ấn.\n\nTrân trọng,\nKhoa',
  },
  zh: {
    me: '李文静',
    them: '王建国',
    from: 'wang.jianguo@yinshua.example',
    short: '周四可以送货，请从后门进来。发票抬头写公司名称就好。',
    long: '王经理，您好：\n\n报价我们接受，先订三百份。\n\n祝好\n李文静',
    original: '李小姐，您好：\n\n附件是报价单，周四可以交货。\n\n此致\n王建国',
  },
  tw: {
    me: '陳怡君',
    them: '林志明',
    from: 'chihming.lin@printing.example',
    short: '星期四下午可以，麻煩送到二樓倉庫，謝謝您。',
    long: '林先生您好，\n\n報價沒有問題，請先印兩百份。\n\n謝謝\n怡君',
    original: '陳小姐您好，\n\n附上報價單，請確認。\n\n志明 敬上',
  },
  ja: {
    me: '佐藤美咲',
    them: '田中健一',
    from: 'tanaka@tanaka-insatsu.example',
    short: '木曜日の午後でお願いします。納品書は二部ご用意ください。',
    long: '田中様\n\nお世話になっております。\nお見積りの件、承知いたしました。五十部お願いいたします。\n\nよろしくお願いいたします。\n佐藤',
    original: '佐藤様\n\nお見積書をお送りします。木曜日に納品できます。\n\n田中健一',
  },
  ko: {
    me: '김서연',
    them: '박민수',
    from: 'minsu.park@inswaeso.example',
    short: '목요일 오후가 좋습니다. 상자는 뒷문 쪽에 놓아 주세요.',
    long: '박 과장님, 안녕하세요.\n\n견적 확인했습니다. 130부로 진행해 주세요.\n\n감사합니다.\n김서연 드림',
    original:
      '안녕하세요, 서연 님.\n\n견적서를 보내 드립니다. 목요일에 납품 가능합니다.\n\n박민수 드림',
  },
  ar: {
    me: 'سارة حداد',
    them: 'خالد نصار',
    from: 'khaled@matbaa.example',
    short: 'من يوم الخميس نكون في المكتب. نرجو إرسال الفاتورة إلى قسم المحاسبة.',
    long: 'مرحبا خالد،\n\nنوافق على العرض ونحتاج إلى ستين نسخة.\n\nمع التحية\nسارة',
    original: 'السيدة سارة،\n\nأرسل لكم عرض السعر كما طلبتم.\n\nتحياتي\nخالد',
  },
  he: {
    me: 'נועה לוי',
    them: 'איתן ברק',
    from: 'eitan@dfus-barak.example',
    short: 'ביום חמישי מתאים לנו. אפשר להשאיר את הקופסאות אצל השומר.',
    long: 'שלום איתן,\n\nההצעה מאושרת, נזמין שמונים עותקים.\n\nבברכה,\nנועה',
    original: 'שלום נועה,\n\nמצורפת הצעת המחיר.\n\nתודה,\nאיתן',
  },
  id: {
    me: 'Dewi Lestari',
    them: 'Budi Hartono',
    from: 'budi@percetakan.example',
    short: 'Pada hari Kamis kantor buka sampai jam lima. Dari pihak kami tidak ada perubahan.',
    long: 'Halo Pak Budi,\n\nPenawarannya kami setujui, pesan 95 lembar.\n\nSalam,\nDewi',
    original: 'Selamat pagi Bu Dewi,\n\nBerikut penawaran kami.\n\nHormat saya,\nBudi',
  },
  ca: {
    me: 'Núria Puig',
    them: 'Jordi Serra',
    from: 'jordi@impremtaserra.example',
    short: 'El dijous ens va bé. De moment només necessitem les mostres.',
    long: 'Bon dia, Jordi,\n\nAcceptem el pressupost de 35 cartells.\n\nSalutacions,\nNúria',
    original: 'Bon dia, Núria,\n\nT’envio el pressupost.\n\nAtentament,\nJordi',
  },
  bg: {
    me: 'Мария Иванова',
    them: 'Георги Петров',
    from: 'g.petrov@pechatnica.example',
    short: 'На четвърти склада ще бъде затворен. От понеделник отново работим нормално.',
    long: 'Здравейте, Георги,\n\nПриемаме офертата за 65 броя.\n\nПоздрави,\nМария',
    original: 'Здравейте,\n\nИзпращам офертата.\n\nПоздрави,\nГеорги',
  },
}
