"""How facts about works, events and ships are worded, and remarks without facts (read by :mod:`.wording`)."""

# A table: one line each.
# ruff: noqa: E501

CLAUSES = """
work_creator: Creator
+ is by {v} | was created by {v} | is the work of {v} || came from the hand of {v}
- Its creator was {v}. | Its author is {v}. | The title page names {v}. || It was {v} who made {o}.

work_form: Form
+ is {an} | has the form of {an} | was conceived as {an} || is classed as {an}
- Its form is that of {an}. | In form it is {an}. | Catalogues call {o} {an}. || As to its genre, it is {an}.

work_model: Model
+ is based on {v} | draws on {v} || takes its story from {v}
- Its model was {v}. | The earlier work behind {o} is {v}. | It owes much to {v}, on which it is based. || Behind {o} stands an earlier work, {v}.
^ Based on {v}

work_dedicatee: Dedicatee
+ is dedicated to {v} | carries a dedication to {v} || honours {v} in its dedication
- Its dedicatee is {v}. | The dedication names {v}. | The first page is addressed to {v}, the dedicatee. || In its dedication one reads the name of {v}.

work_descendants: Later works
+ was the model of {v} | inspired {v} || lives on in {v}
- Based on {o}: {v}. | Later works that draw on {o}: {v}. | It served as the model for {v}. || From {o} others took their story: {v}.

work_theme: Theme
+ is about {v} | deals with {v} || has {v} at its centre
- Its theme is {v}. | Its subject is {v}. | At its heart is {v}. || What it treats of is {v}.

work_setting: Setting
+ is set in {v} | shows {v} || has {v} for its scene
- Its setting is {v}. | The scene is {v}. | Everything takes place in {v}. || One recognises {v} as its scene.
^ Set in {v}

work_year: Year of appearance
+ first appeared in {v} | was presented in {v} || came before the public in {v}
- The year of its first appearance was {v}. | It dates from {v}. | The public first saw {o} in {v}. || In {v} it was shown for the first time.

work_premiere: Place of first presentation
+ was first presented in {v} | had its first showing in {v} || was seen first of all in {v}
- The place of its first presentation was {v}. | Its first audience was that of {v}. | It was {v} that saw {o} first. || The first showing took place in {v}.
^ First presented in {v}

work_owner: Owner
+ is kept by {v} | belongs to {v} || is in the keeping of {v}
- The original is held by {v}. | Its owner is {v}. | The original can be seen at {v}, which owns it. || The institution that guards {o} is {v}.

event_date: Date
+ began on {v} | opened on {v} || started on {v}
- Its date is given as {v}. | The first day was {v}. | It all began on {v}. || The day on which it began was {v}.

event_place: Place
+ took place at {v} | was held at {v} || happened at {v}
- Its site was {v}. | The place of the {noun} was {v}. | It was {v} that saw {o}. || The ground on which it happened is that of {v}.

event_cause: Matter at issue
+ was about {v} | turned on {v} || came about over {v}
- The matter at issue was {v}. | What it was about was {v}. | Behind it lay a dispute over {v}. || The question that moved people was that of {v}.

event_before: Cause
+ arose from {v} | was a result of {v} || was brought about by {v}
- It was {v} that led to {o}. | The earlier event behind {o} was {v}. | Without {v} it would not have come about. || Its cause must be sought in {v}.

event_leader: Leading figure
+ was led by {v} | was dominated by {v} || had {v} as its foremost figure
- The leading figure was {v}. | The chief part was played by {v}. | It was {v} who took the lead. || Of all who took part in {o}, {v} was foremost.

event_opponent: Leader of the other side
+ saw {v} at the head of the other side | set {v} against the leading figure || brought {v} forward as the opposing leader
- The other side was led by {v}. | The opposing leader was {v}. | On the other side stood {v} as leader. || At the head of the opposition was {v}.

event_attendance: Number of participants
+ involved {v} people | drew {v} participants || had {v} people present
- The number of participants was {v}. | In all {v} people took part. | The rolls list {v} participants. || Those present numbered {v}.

event_days: Duration
+ lasted {v} | went on for {v} || took {v} in all
- Its duration was {v}. | From beginning to end it took {v}. | It was over after {v}. || It came to a close when {v} had passed.

event_after: Consequences
+ led to {v} | was the cause of {v} || brought about {v}
- From it arose {v}. | Its consequences: {v}. | Later events that it caused: {v}. || What followed from {o}: {v}.

ship_port: Home port
+ had {v} as its home port | was registered in {v} || belonged to the port of {v}
- Its home port was {v}. | The port of registry was {v}. | At its stern stood the name of {v}, its home port. || The place it returned to as its home port was {v}.

ship_captain: First captain
+ was first commanded by {v} | had {v} as its first captain || sailed first under {v}
- Its first captain was {v}. | The first command was given to {v}. | On its maiden voyage it was commanded by {v}. || The first to command {o} was {v}.

ship_builder: Builder
+ was built by {v} | came from the slips of {v} || left the yard of {v}
- Its builder was {v}. | The contract went to {v}, which built {o}. | The hull was built by {v}. || The firm that built {o} was {v}.
^ Built by {v}

ship_launched: Date of launch
+ was launched on {v} | left the slips on {v} || first touched the water on {v}
- Its launch took place on {v}. | The date of its launch is {v}. | The launch was celebrated on {v}. || On {v} it went down the slips.
^ Launched on {v}

ship_length: Length
+ was {v} long | had a length of {v} || measured {v} from stem to stern
- Its length was {v}. | The hull had a length of {v}. | Over all it came to {v} in length. || From stem to stern it came to {v}.

ship_tonnage: Displacement
+ displaced {v} | had a displacement of {v} || was rated at {v} of displacement
- Its displacement was {v}. | Fully laden it displaced {v}. | The papers give a displacement of {v}. || The water it displaced came to {v}.

ship_crew: Size of the crew
+ carried a crew of {v} | was manned by {v} hands || needed {v} hands to sail
- Its crew numbered {v}. | The crew list has {v} names. | There were {v} people in its crew. || The size of its crew was {v}.

ship_cargo: Cargo
+ usually carried {v} | was used to carry {v} || mostly had {v} in its hold
- Its usual cargo was {v}. | Its hold was usually filled with {v}. | The cargo was nearly always {v}. || What it carried, year in, year out, was {v}.

ship_retired: Last year of service
+ was taken out of service in {v} | was retired in {v} || was laid up for good in {v}
- Its service ended in {v}. | The last year of its service was {v}. | It was sold for scrap after its retirement in {v}. || In {v} its days at sea were over.
"""

REMARKS = """
work 0
{S} is often mentioned and less often known at first hand.
Several copies are in circulation, some of them poor.
It has been translated or imitated many times.
It is among the best-known creations of its time.
{S} divides opinion to this day.
{S} was long thought to be lost.
Its opening is [often quoted|much imitated|a favourite of parodists].
A [facsimile|cheap edition|recording|reproduction] appeared not long ago.
{S} is [shorter|longer] than people expect.

work 1
It was finished within a few months.
Sketches show that the plan changed more than once.
The manuscript is full of corrections.
It was commissioned, but the fee was never paid in full.
It was begun in a [mood of despair|hired room|cold spring].
A [patron|friend|rival] had suggested the plan.
The [first draft|last part|title] was changed at the last moment.
[Debts|Illness|A journey] interrupted the work.
Only [two|three] leaves of the first draft survive.

work 2
It moves from comedy to something darker.
The ending has been understood in very different ways.
Minor figures are drawn with special care.
Its structure is unusual for its time.
The [opening|middle|final part] is the most admired.
Humour is never far away.
Nothing in it happens by chance.
[Dreams|Letters|Storms|Meals] play a large part in it.
It has more than one possible ending.

work 3
Critics were divided at first.
A second showing was received with far more warmth.
The reviews were polite.
It fell into oblivion and was rediscovered by chance.
It became a standard item in schools.
[Rain|A strike|A rival show] kept many away at first.
The public [laughed|wept|whistled] in the wrong places.
Copies were [pirated|burned|smuggled] abroad.
It earned [little|more than anyone had hoped|nothing at all].
A [parody|forgery|pirated copy] followed within the year.

event 0
{S} is remembered every year with speeches.
Few events of the time have been written about so much.
Eyewitness reports differ in many details.
The name came into use only later.
{S} is a stock subject of [paintings|school plays|speeches].
{S} has been called a [turning point|comedy of errors|sad necessity].
Its [dates|details|motives] are disputed in minor points.
Children play it in the [streets|schoolyards].

event 1
Tension had been building up for years.
Attempts at a compromise had failed.
Pamphlets on both sides had prepared the ground.
Bad harvests had made matters worse.
[Rumours|Letters|Insults] had gone back and forth.
The [price of bread|mood in the streets|weather] was a warning.
An [envoy|arbiter|old law] might have settled the matter.
Nobody had expected it to come so soon.

event 2
The first days were chaotic.
Rain turned the ground to mud.
Messengers could not get through.
The outcome was open until the last moment.
Both sides later claimed to have had the better of it.
The [nights|mornings] were [cold|foggy|quiet].
[Food|Water|Paper|Money] ran short.
A [drummer|cook|clerk] kept a diary of it.
Women from the neighbourhood brought bread and news.
[An accident|A misread note|An early dusk] decided the matter.

event 3
A monument stands on the site.
The consequences were felt for a generation.
Songs were written about it.
Historians judge its effects in different ways.
A [medal|coin|stamp] was struck in its memory.
The losers were treated [mildly|harshly|with respect].
The [records|trophies|banners] were scattered.
Old enemies were reconciled in time.

ship 0
{S} was considered a lucky ship.
A model stands in the harbour office.
Sailors complained of its heavy rolling.
It was painted grey throughout.
{S} had a [carved|gilded|plain] figurehead.
Its [bell|anchor|wheel] has been preserved.
{S} was [quick|slow|wet] in a head wind.
Songs were sung about its [cook|cat|second mate].
It was nicknamed after a [duck|teapot|grandmother].

ship 1
The plans were changed twice while the hull was on the slips.
The timbers and plates were of the best quality.
Trials were satisfactory after the rudder had been altered.
Costs were far above the estimate.
The [keel|mast|rudder] came from abroad.
Work stopped for a [month|winter] for want of [oak|iron|money].
A sister ship was ordered and cancelled.
The [launch|trial] was spoiled by [rain|fog].
It was strengthened for [ice|heavy seas].

ship 2
It ran aground once, without loss of life.
Several voyages were delayed by ice.
The log books are preserved almost in full.
It changed owners more than once.
It was [dismasted|rammed|becalmed] once and repaired.
[Rats|Leaks|Unpaid wages] were a standing complaint.
It rode out a great storm with the loss of [one boat|two sails].
It carried [letters|livestock|emigrants] on the side.
The insurance was raised [twice|three times].
"""
