"""How facts about rivers, mountains and species are worded, and remarks without facts (read by :mod:`.wording`)."""

# A table: one line each.
# ruff: noqa: E501

CLAUSES = """
river_country: Country
+ flows through {v} | is a river of {v} || runs its course in {v}
- Its country is {v}. | The country that it crosses is {v}. | It is one of the rivers of {v}. || One finds {o} on the maps of {v}.

river_length: Length
+ is {v} long | has a length of {v} || runs for {v}
- Its length is {v}. | From source to mouth it measures {v}. | The whole course comes to {v}. || It covers {v} from its source to its mouth.
^ With a length of {v}

river_source: Source
+ rises on {v} | has its source on {v} || comes down from {v}
- Its source lies on {v}. | The springs are on the slopes of {v}. | It begins on {v}. || High on {v} it has its beginning.
^ Rising on {v}

river_into: Receiving river
+ flows into {v} | joins {v} | is a tributary of {v} || gives its water to {v}
- Its waters end in {v}. | It ends where it meets {v}. | At its mouth it is taken up by {v}. || The river that receives {o} is {v}.

river_settlements: Settlements
+ flows through {v} | passes {v} || touches {v}
- On its banks: {v}. | The settlements along its course: {v}. | Its bridges stand in {v}. || Going downstream or up, one passes {v}.

river_discharge: Mean discharge
+ carries {v} on average | has a mean discharge of {v} || delivers {v} at its mouth
- Its mean discharge is {v}. | The gauge at the mouth shows an average of {v}. | Its average flow comes to {v}. || Over the year it brings down {v} on average.

river_basin: Drainage basin
+ drains {v} | has a basin of {v} || collects the water of {v}
- Its drainage basin covers {v}. | The catchment measures {v}. | The area drained comes to {v}. || The land from which it gathers its water extends over {v}.

river_tributaries: Tributaries
+ is joined by {v} | takes up {v} || receives {v}
- Its tributaries: {v}. | Into it flow {v}. | The waters it takes in are those of {v}. || Its water comes in part from {v}.

mountain_region: Region
+ rises in {v} | lies in {v} || is a landmark of {v}
- It is part of {v}. | The region in which it lies is {v}. | It looks down on {v}, its region. || One finds {o} in {v}.

mountain_range: Range
+ belongs to the {v} | is part of the {v} || stands in the chain of the {v}
- The range of which it is part is the {v}. | It is one of the peaks of the {v}. | Geologists count {o} among the {v}. || Its chain goes by the name of the {v}.

mountain_height: Height
+ rises to {v} | is {v} high | has an elevation of {v} || lifts its summit to {v}
- Its height is {v}. | The summit stands at {v}. | The survey gives its height as {v}. || Measured from the sea, its top is at {v}.

mountain_prominence: Prominence
+ has a prominence of {v} | stands {v} above its highest saddle || stands out by {v} above the saddle behind
- Its prominence is {v}. | The prominence of the summit comes to {v}. | Between saddle and summit lie {v} of prominence. || As to prominence, the figure is {v}.

mountain_climbed: Date of the first ascent
+ was first climbed on {v} | had its first ascent on {v} || was conquered on {v}
- The first ascent took place on {v}. | The summit was first reached on {v}. | A first party stood on the top on {v}. || On {v} its summit was trodden for the first time.
^ First climbed on {v}

mountain_climber: First climber
+ was first climbed by {v} | was conquered by {v} || yielded first to {v}
- The first to stand on its summit was {v}. | The leader of the first ascent was {v}. | The first ascent was led by {v}. || It was {v} who first reached the top.

species_region: Native region
+ is native to {v} | lives only in {v} || has its one home in {v}
- Its native region is {v}. | Outside {v} it is not found. | Its range is confined to {v}. || The only place to look for {o} is {v}.

species_habitat: Habitat
+ prefers {v} | is a creature of {v} || keeps to {v}
- Its habitat is {v}. | Most sightings come from {v}, its habitat. | Its chosen ground is {v}. || The right surroundings to look for {o} are {v}.

species_length: Length
+ grows to a length of {v} | is {v} long when grown || measures {v} from end to end
- Its body length is {v}. | The length of a grown specimen is {v}. | Museum specimens have a length of {v}. || From end to end it comes to {v}.

species_mass: Mass
+ weighs {v} | has a mass of {v} || reaches a weight of {v}
- Its mass is {v}. | A grown specimen weighs {v}. | On the scales it comes to {v}. || Its weight, fully grown, is {v}.

species_prey: Prey
+ feeds mainly on {v} | hunts {v} || lives on {v}
- Its main prey is {v}. | The greater part of its food is {v}. | It takes {v} more than anything else. || Its table is set with {v}.

species_predators: Predators
+ is the main prey of {v} | is hunted by {v} || falls victim to {v}
- Its predators: {v}. | It must fear {v}. | Its enemies are listed as {v}. || Those that feed on {o}: {v}.

species_gestation: Brooding time
+ broods or carries its young for {v} | has a brooding time of {v} || takes {v} to bear its young
- The brooding time is {v}. | Its young are brooded or carried for {v}. | From mating to young it takes {v}. || The young come after a brooding of {v}.

species_describer: Describer
+ was first described by {v} | was made known by {v} || owes its first description to {v}
- The first description is by {v}. | Its describer was {v}. | It was {v} who described {o}. || The author of its first description is {v}.

species_described: Year of description
+ was first described in {v} | became known to science in {v} || has been known to science since {v}
- The year of its first description is {v}. | The first description appeared in {v}. | Its scientific history begins in {v}. || In {v} it was first written about.
^ First described in {v}
"""

REMARKS = """
river 0
{S} has a bad name among boatmen.
Its water is clear and cold.
Its name is older than any of the languages spoken there now.
It freezes over in hard winters.
It is popular with anglers.
{S} is known for its [trout|fogs|echo|white stones|willows].
Its [floods|colour|mists] are described in many poems.
[Timber|Barges|Pilgrims] used to travel down it.
Swimmers are warned of its [currents|cold|whirlpools].
Its valley is [narrow|broad|wooded|marshy] for most of the way.

river 1
The upper reaches are fast and full of rapids.
Further down it winds between meadows.
Ferries still cross it at several points.
The banks were strengthened after the great floods.
A towpath follows the left bank.
The [left|right] bank is the steeper one.
[Weirs|Locks|Sluices] have been built at several points.
[An old|A disused] canal runs beside it.
Its bed is [stony|sandy|muddy].
Islands divide it in the [upper|middle|lower] part.

river 2
Water levels are highest in late spring.
The gauges are read every morning.
Dykes protect the lower fields.
The quality of the water has improved in the last decades.
[Droughts|Frosts|Cloudbursts] change its level quickly.
A [power station|pumping station|dam] has been proposed more than once.
The water is [soft|hard|slightly brown].
Measurements go back [sixty|eighty|a hundred] years.
[Otters|Herons|Eels] are a good sign, say the wardens.

mountain 0
{S} can be seen from far away on clear days.
Legends tell of a giant asleep beneath {o}.
Its outline appears on local coats of arms.
Its name is explained in several ways.
{S} is capped by [clouds|snow|mist] on most days.
Its [echo|shadow|caves] gave rise to [stories|songs|superstition].
Shepherds use its lower slopes in [summer|autumn].
The name is spelled in [two|three] ways on old maps.
{S} is a favourite of [painters|photographers|balloonists].

mountain 1
The northern face is steep, while the southern slopes are gentle.
Snow lies in the gullies until early summer.
The rock is hard and splits into large slabs.
A small hut below the ridge offers shelter.
[Larches|Pines|Junipers] grow up to the middle slopes.
A small [lake|glacier|spring] lies in the [eastern|western|northern] hollow.
The [ridge|summit|saddle] is [broad|narrow|broken].
Rockfall is common in [spring|wet weather].
The view takes in half the country.

mountain 2
Several earlier parties had turned back in bad weather.
The usual route follows the eastern ridge.
A book in a tin box on the top records every party.
Winter ascents remain rare.
The [route|rope|guide] had to be changed after an accident.
A [flag|cairn|wooden cross] marks the top.
The guides of the valley had thought it [impossible|haunted|not worth the effort].
A [storm|fall of stones|lack of food] nearly ended the attempt.
The descent took longer than the climb.
Members of the party later quarrelled over the credit.

species 0
{S} is rarely seen and more often heard.
It is protected by law in its whole range.
Country people tell many stories about {o}.
Its numbers have been stable for some time.
{S} is a favourite of [painters|children|collectors].
It is easily [tamed|overlooked|startled].
It figures in [proverbs|nursery rhymes|coats of arms].
Dry [summers|winters] are hard on it.
It is kept in a few [zoos|private gardens].

species 1
Males and females look much alike.
The young are darker than the grown animals.
The markings vary a good deal from one animal to the next.
It can be told from its relatives by its proportions.
The [head|back|underside] is [darker|paler] than the rest.
The eyes are [large|small|yellow|dark].
It moults [once|twice] a year.
[Albino|Unusually large|Unusually dark] animals turn up now and then.
The tracks are hard to read.

species 2
It is active at dusk and in the early morning.
Outside the mating season it lives alone.
Its call is a short, dry note.
It stores food before the winter.
It [sleeps|hides|rests] through the [hot|cold] months.
It defends a small territory.
It is fond of [sun|rain|shade].
It nests or dens in [hollow trees|burrows|crevices|dense reeds].
It can live for [several|many] years in captivity.
It is silent for most of the year.

species 3
The first specimens were collected by accident.
The type specimen has been lost and replaced.
Its place among its relatives has been debated.
Later authors confirmed the original account in most points.
[Drawings|Skins|Letters] of the time show [some confusion|great care].
The name was [misspelled|changed|mistranslated] in later books.
A second form turned out to be the same animal.
Local people had always known it.
The account runs to a single page.
"""
