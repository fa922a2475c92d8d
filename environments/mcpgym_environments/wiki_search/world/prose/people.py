"""How facts about people and institutions are worded, and remarks without facts (read by :mod:`.wording`)."""

# A table: one line each.
# ruff: noqa: E501

CLAUSES = """
person_occupation: Occupation
+ {be} {an} | made {p} name as {an} | worked as {an} || earned {p} living as {an}
- {S} is remembered above all as {an}. | {P} profession was that of {an}. | The records list {o} as {an}. || By profession {s} {be} {an}.

person_born: Date of birth
+ was born on {v} | came into the world on {v} || was born to the world on {v}
- {P} date of birth is {v}. | The register gives {v} as {p} date of birth. || {P} birthday, by the register, was {v}.
^ Born on {v}

person_birthplace: Birthplace
+ was born in {v} | came from {v} | was a native of {v} || first saw the light of day in {v}
- {P} birthplace was {v}. | {P} family lived in {v} when {s} was born. | It was in {v} that {s} was born. || {S} was a child of {v}, where {p} birth is recorded.
^ Born in {v} | A native of {v}

person_mother: Mother
+ was a child of {v} | was born to {v} || had {v} for a mother
- {P} mother was {v}. | Family papers name {v} as {p} mother. | The mother of {o} was {v}. || It was {v} who gave birth to {o}.
^ A child of {v}

person_university: University
+ studied at {v} | attended {v} | took a degree at {v} || spent {p} student years at {v}
- {P} alma mater was {v}. | {P} name stands in the rolls of {v}. | {S} received {p} education at {v}. || The students of {v} counted {o} among them.
^ After studies at {v} | Educated at {v}

person_mentor: Teacher
+ was taught by {v} | trained under {v} | learned {p} craft from {v} || was apprenticed to {v}
- {P} mentor was {v}. | It was {v} who taught {o}. | {S} owed most to {p} teacher, {v}. || As a pupil of {v}, {s} soon stood out.
^ Trained by {v}

person_employer: Employer
+ worked for {v} | held a post at {v} | spent many years at {v} || was in the service of {v}
- {P} employer was {v}. | {P} working life was spent at {v}. | For much of {p} career {s} served {v}. || It was {v} that gave {o} a position.

person_pupils: Pupils
+ taught {v} | trained {v} || counted {v} as pupils, according to the sources
- {P} pupils, as far as they are known: {v}. | In later years {s} taught {v}. || Those who learned from {o}: {v}.

person_works: Works
+ created {v} | is the author of {v} || left behind {v}
- {P} known output consists of {v}. | Catalogues list under {p} name: {v}. || From {p} hand come {v}.

person_spouse: Spouse
+ married {v} | was married to {v} || was joined in marriage with {v}
- {P} spouse was {v}. | {P} marriage to {v} is well documented. | A marriage bound {o} to {v}. || In marriage {s} was the partner of {v}.

person_children: Children
+ gave birth to {v} | was the mother of {v} || bore {v}
- {P} offspring, so far as it is recorded: {v}. | Of {p} family the records name {v}. || Born to {o}: {v}.

person_home: Residence
+ lives in {v} | makes {p} home in {v} || resides in {v}
- {P} home is in {v}. | {S} has a house in {v}. | {P} present residence is {v}. || These days {s} can be found in {v}.

person_died: Date of death
+ died on {v} | passed away on {v} || breathed {p} last on {v}
- {P} death came on {v}. | The date of {p} death is {v}. | {P} life ended on {v}. || On {v} {s} died.

person_deathplace: Place of death
+ died in {v} | ended {p} days in {v} || breathed {p} last in {v}
- {P} place of death was {v}. | Death found {o} in {v}. | It was in {v} that {s} died. || The end came in {v}.

institution_seat: Seat
+ is based in {v} | has its seat in {v} | is located in {v} || makes its home in {v}
- Its seat is in {v}. | Its buildings stand in {v}. | It is {v} that houses {o}. || The address of {o} is in {v}.
^ Based in {v}

institution_emblem: Emblem
+ bears {v} as its emblem | has {v} for an emblem || appears under the sign of {v}
- Its emblem is {v}. | Its letters are sealed with its emblem, {v}. | The emblem above the door shows {v}. || On its emblem one sees {v}.

institution_founded: Year of foundation
+ was founded in {v} | was established in {v} | opened its doors in {v} || has existed since {v}
- The year of its foundation was {v}. | Its charter dates from {v}. | Its history begins in {v}. || In {v} {s} came into being.
^ Founded in {v} | Established in {v}

institution_founder: Founder
+ was founded by {v} | owes its existence to {v} || was set up by {v}
- Its founder was {v}. | It was {v} who established {o}. | The initiative came from {v}, its founder. || The person behind its foundation was {v}.
^ Founded by {v}

institution_head: Head
+ is headed by {v} | is led by {v} || answers to {v} as its head
- Its present head is {v}. | At its head stands {v}. | The office of head is held by {v}. || It is {v} who is in charge.

institution_members: Number of members
+ counts {v} people | has {v} people on its rolls || has a headcount of {v}
- There are {v} people at {o}. | Its membership stands at {v}. | Some {v} people belong to {o}. || Its rolls run to {v} people.

institution_rival: Rival
+ competes with {v} | is the rival of {v} || measures itself against {v}
- Its old rival is {v}. | A long rivalry sets {o} against {v}. | Its rivalry with {v} is proverbial. || The competitor it respects most is {v}.

institution_alumni: Alumni
+ taught {v} | had {v} as students || can point to its graduates: {v}
- Its known alumni: {v}. | Among its students were {v}. | The rolls of students name {v}. || Those who studied here: {v}.

institution_staff: Staff
+ employed {v} | gave posts to {v} || had in its service {v}
- Posts were held here by {v}. | Its known staff: {v}. | The pay books name {v}. || Those on its staff: {v}.
"""

REMARKS = """
person 0
{S} {be} well known beyond {p} own country.
{P} name still appears in schoolbooks.
The literature about {o} fills several shelves.
{P} portrait hangs in more than one town hall.
Opinions about {o} have varied from one generation to the next.
{S} left behind a large number of [letters|notes|sketches|papers].
A [prize|street|square|small society] bears {p} name.
{P} life has been the subject of [two|three|several] biographies.
Few of {p} time are quoted as often.
{P} reputation has [grown|faded|hardly changed] since {p} own day.
A [film|play|postage stamp] made {o} familiar to a wider public.
{S} {be} a figure on whom [scholars|critics|admirers] rarely agree.

person 1
Little else is known about {p} childhood.
{P} letters speak of a strict but happy household.
{S} was said to have been a restless child who read whatever came to hand.
Much of what has been written about these years is legend.
An illness kept {o} at home for most of one winter.
{P} schoolbooks have survived, with drawings in the margins.
A [fire|flood|move] destroyed most of the family's papers.
{S} showed an early liking for [music|drawing|numbers|long walks|old maps].
{P} first years at school were [unhappy|uneventful|cut short by illness].
[An uncle|An aunt|A neighbour|An older cousin] lent {o} books.
{S} is said to have learned to read before [{s} could ride|{s} was four].
The family was neither rich nor poor.

person 2
Contemporaries praised {p} patience and complained of {p} handwriting.
{S} travelled widely and kept careful notes.
{P} methods were disputed at the time and are taken for granted today.
Several of {p} drafts were lost in a fire.
{S} was not a popular colleague, but a respected one.
Success came late, and {s} never quite trusted it.
{P} notebooks fill [eleven|fourteen|twenty] boxes.
{S} preferred to work [at night|in the early morning|standing up].
A long quarrel over [money|priority|a lost letter] darkened these years.
{S} turned down [two|several] offers from abroad.
{P} rules for the use of [time|ink|daylight] became proverbial.
Assistants came and went; few stayed longer than a [year|season].
{S} gave up public lectures after a [cold reception|bad fall|long illness].

person 3
Friends described {o} as generous and rather stubborn.
{S} kept bees and played the flute badly.
{P} private letters were sealed for fifty years and turned out to be about gardening.
{S} spoke little about {p} family in public.
Visitors remembered a plain house and a good table.
{P} garden was known for its [roses|pear trees|herbs|sundial].
{S} never learned to [swim|cook|dance].
{P} temper was mild, except where [money|noise|politics] was concerned.
{S} collected [shells|clocks|old keys|hats|walking sticks].
A diary of [twelve|twenty|thirty] volumes records the weather and little else.
{S} rose early and dined late.

person 4
{P} health had been failing for some years.
{P} papers were scattered among {p} friends.
The funeral was a quiet one, as {s} had wished.
Obituaries appeared in several languages.
A plain stone marks the grave.
{P} last letters are [cheerful|brief|hard to read].
{P} library was sold [at auction|within a year|to pay debts].
A death mask is [lost|kept in private hands].
{S} had put {p} affairs in order some [weeks|months] before.
The [bells|flags|shops] of the place marked the day.
{S} worked until the final [week|month].

institution 0
{S} is among the better-known bodies of its kind.
Visitors are admitted on the first day of every month.
Its name is protected by law.
It publishes a yearbook that few people read to the end.
Its archives are open to scholars.
The main [hall|staircase|courtyard] is a protected monument.
{S} has a reputation for [thrift|patience|strict rules|good manners].
Its [clock|porter|garden|cellar] is better known than anything else about it.
A popular song makes fun of it.
Tours are given in [spring|summer|autumn].
It keeps [two|three] cats on its payroll.
{S} appears on old [banknotes|postcards|engravings].

institution 1
The first years were difficult, and money was short.
The founding document has survived in two copies that differ in small points.
The original building burned down and was replaced by a larger one.
At first only a dozen people were involved.
A jubilee volume tells the story at great length.
The [first|second] attempt had failed for want of [money|members|a licence].
The opening was delayed by [rain|a strike|a dispute over the lease].
Its early minutes were kept in [verse|cipher|pencil].
A rival scheme was dropped at the last moment.
The town gave the [land|timber|bricks] free of charge.
For some years it worked from rented [rooms|sheds|cellars].
The seal of those days is lost.

institution 2
Its statutes have been revised several times.
A council of nine elders oversees the accounts.
Its finances are considered sound.
Reforms have been discussed for years without result.
It holds a public assembly every spring.
New rules on [voting|fees|dress|quorums] came in not long ago.
Its accounts are audited [every year|twice a year].
Most of the work is done by [committees|volunteers|long-serving clerks].
Women have been admitted on equal terms from the first.
A pension fund was set up for the [staff|widows|apprentices].
Meetings are famous for their [length|silence|brevity].
Its budget is [published|secret|printed in full].

institution 3
A register has been kept since the beginning, with some gaps.
A bronze tablet in the entrance hall lists those to whom much is owed.
Not every claim of membership made in obituaries can be verified.
The register is open to visitors on request.
Portraits hang in the [library|dining hall|corridor].
The lists were copied out by hand until [recently|the last century].
Visitors often ask for [autographs|old photographs|anecdotes].
An annual dinner keeps the memory alive.
Obituaries are printed in the [yearbook|bulletin].
A few names have been struck from the lists.
"""
