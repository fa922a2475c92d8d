"""How facts about countries, regions, settlements, rivers and mountains are worded (read by :mod:`.wording`)."""

CLAUSES = """
country_capital: Capital
+ has its capital in {v} | is governed from {v} || has its seat of government in {v}
- Its capital is {v}. | The capital of the country is {v}. | {V} is the capital. || Parliament and ministries sit in {v}, the capital.

country_language: Official language
+ has {v} as its official language | is administered in {v} || uses {v} as the language of state
- The official language is {v}. | Laws are published in {v}, the official language. | {V} is the language of government. || The state speaks {v} by law.

country_area: Area
+ covers {v} | has an area of {v} || extends over {v}
- Its area is {v}. | The land survey gives its area as {v}. | In all it takes up {v}. || The extent of the country comes to {v}.

country_summit: Highest mountain
+ rises to its highest point on {v} | has its highest peak in {v} || culminates in {v}
- Its highest mountain is {v}. | No mountain of the country is higher than {v}. | The highest summit is that of {v}. || The tallest of its peaks is {v}.

country_river: Longest river
+ is crossed by {v}, its longest river | has its longest river in {v} || owes its longest waterway to {v}
- Its longest river is {v}. | None of its rivers is longer than {v}. | The longest watercourse is {v}. || Among its rivers, {v} is the longest.

country_neighbours: Neighbours
+ borders {v} | shares its land borders with {v} || lies next to {v}
- Its neighbours: {v}. | It is bounded by {v}. | The neighbouring countries are listed as follows: {v}. || Across its borders one comes to {v}.

country_independence: Date of independence
+ became independent on {v} | gained its independence on {v} || has been a sovereign state since {v}
- Independence was declared on {v}. | Its independence dates from {v}. | The act of independence was signed on {v}. || On {v} the country became its own master.
^ Independent since {v}

country_head: Head of state
+ is led by {v} | has {v} as its head of state || is presided over by {v}
- The head of state is {v}. | The highest office of the state is held by {v}. | At the head of the country stands {v}. || It is {v} who represents the country as its head.

country_regions: Regions
+ is divided into {v} | consists of {v} || is made up of {v}
- The regions of the country: {v}. | Its constitution names these regions: {v}. | For administration it is split into {v}. || Together, {v} form the country.

country_population: Population
+ has a population of {v} | is home to {v} people || counts {v} inhabitants
- Its population is {v}. | The latest census found {v} inhabitants. | In total {v} people live in the country. || The number of its inhabitants stands at {v}.

country_currency: Currency
+ uses the {v} as its currency | mints the {v} as its money || pays in the {v}
- The currency is the {v}. | Its money is the {v}. | Prices are given in the national currency, the {v}. || The legal tender is the {v}.

country_metropolis: Largest settlement
+ has its largest settlement in {v} | has no settlement more populous than {v} || is largest of all at {v}, by the count of inhabitants
- The most populous settlement is {v}. | Its largest city is {v}. | Nowhere do more of its people live than in {v}. || By number of inhabitants, {v} leads the list.

country_animal: National animal
+ has {v} as its national animal | carries {v} on its arms || honours {v} as its emblematic animal
- The national animal is {v}. | Coins and arms show {v}, the national animal. | By law {v} is the national animal. || Its heraldic animal is {v}.

region_country: Country
+ is a region of {v} | belongs to {v} | lies in {v} || forms part of {v}
- It is part of {v}. | The country to which it belongs is {v}. | The flag of {v} flies over its offices. || Politically it is a part of {v}.

region_formed: Year of formation
+ was formed in {v} | was established as a region in {v} || has existed in its present form since {v}
- The year of its formation was {v}. | It was created in {v}. | The law that created {o} dates from {v}. || In {v} it was set up.
^ Formed in {v} | Created in {v}

region_area: Area
+ covers {v} | has an area of {v} || stretches over {v}
- Its area is {v}. | The land survey gives its area as {v}. | In all it takes up {v}. || Its surface comes to {v}.

region_mountains: Mountains
+ contains these mountains: {v} | includes the peaks of {v} || rises in {v}
- The mountains of the region: {v}. | On its maps one finds {v}. | Climbers come for {v}. || Its peaks go by the names of {v}.

region_seat: Seat
+ is administered from {v} | has its seat in {v} || is run from {v}
- Its administrative centre is {v}. | The regional capital is {v}. | The regional offices are in {v}, its seat. || The council of the region meets in {v}, the seat.

region_governor: Governor
+ is governed by {v} | has {v} as its governor || has been entrusted to {v} as governor
- The governor is {v}. | The governorship is held by {v}. | Its present governor is {v}. || It is {v} who governs.

region_population: Population
+ has a population of {v} | is home to {v} people || counts {v} inhabitants
- Its population is {v}. | The latest census found {v} inhabitants. | In total {v} people live in the region. || The number of its inhabitants stands at {v}.

region_settlements: Settlements
+ contains these settlements: {v} | includes {v} || takes in {v}
- The settlements of the region: {v}. | Its towns and villages are listed as {v}. | The register of places names {v}. || People live in {v}.

region_species: Native species
+ is the only home of {v} | has these native species: {v} || shelters {v}, found nowhere else
- Native to the region: {v}. | Found here and nowhere else: {v}. | Naturalists come for {v}. || Its own animals: {v}.

settlement_region: Region
+ lies in {v} | belongs to the region of {v} | is a {noun} in {v} || is to be found in {v}
- It is part of {v}. | The region to which it belongs is {v}. | On the map one finds {o} in {v}. || For administration it comes under {v}.
^ Situated in {v}

settlement_population: Population
+ has {v} inhabitants | has a population of {v} | is home to {v} people || counts {v} inhabitants
- Its population is {v}. | The latest census found {v} inhabitants. | In total {v} people live there. || The number of its inhabitants stands at {v}.

settlement_elevation: Elevation
+ lies {v} above the sea | stands at an elevation of {v} || is situated at a height of {v}
- Its elevation is {v}. | The market square lies {v} above sea level. | The survey gives an elevation of {v}. || Above the sea it lies at {v}.

settlement_river: River
+ lies on {v} | stands on the banks of {v} | was built beside {v} || is washed by {v}
- {V} flows through {o}. | Its bridges cross {v}. | The river at its gates is {v}. || Past its houses runs {v}.
^ On the banks of {v}

settlement_area: Area
+ covers {v} | has an area of {v} || takes up {v}
- Its area is {v}. | The municipal area comes to {v}. | The boundary stones enclose {v}. || The ground it covers measures {v}.

settlement_distance: Distance to the capital
+ is {v} from the capital of the country | lies {v} away from the national capital || is separated from the capital of the country by {v}
- The distance to the capital of the country is {v}. | Travellers reckon {v} to the national capital. | From here it is {v} to the national capital. || The way to the capital of the country measures {v}.

settlement_founded: Year of foundation
+ was founded in {v} | was established in {v} || came into being in {v}
- The year of its foundation was {v}. | Its charter dates from {v}. | The chronicles date its foundation to {v}. || Its history begins in {v}.
^ Founded in {v} | Established in {v}

settlement_founder: Founder
+ was founded by {v} | owes its existence to {v} || was laid out by {v}
- Its founder was {v}. | It was {v} who established {o}. | A statue honours {v}, the founder. || The person behind its foundation was {v}.

settlement_trade: Main trade
+ is known for {v} | lives mostly from {v} || has long depended on {v}
- Its main trade is {v}. | The chief industry is {v}. | Most families work in {v}, the main trade. || Its prosperity rests on {v}.

settlement_mayor: Mayor
+ has {v} as its mayor | is headed by its mayor, {v} || has elected {v} as mayor
- The mayor is {v}. | The office of mayor is held by {v}. | The present mayor is {v}. || It is {v} who heads the council as mayor.

settlement_twin: Sister town
+ is twinned with {v} | has a sister town in {v} || keeps up a partnership with {v}
- Its sister town is {v}. | A partnership links {o} with {v}, its twin. | Every second year it exchanges visits with {v}, its twin. || The town with which it is twinned is {v}.

settlement_institutions: Institutions
+ is the seat of {v} | houses {v} || gives a home to {v}
- Based here: {v}. | The institutions of the place: {v}. | It has within its bounds {v}. || Here stand the buildings of {v}.

settlement_natives: Born here
+ was the birthplace of {v} | was the native place of {v} || saw the birth of {v}
- Born here: {v}. | The parish register records the births of {v}. | Its known natives: {v}. || It can claim as its own by birth {v}.

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
- Its tributaries: {v}. | Into it flow {v}. | The rivers that join {o}: {v}. || Its water comes in part from {v}.

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
"""

FILLERS = """
country 0
{S} is known for its changeable weather and its long winters.
Its people are said to be fond of music.
Travellers have written about {o} since the middle of the fifteenth century.
It has many local dialects.
Its flag was redesigned more than once.

country 1
The land is varied: plains give way to hills, and hills to bare rock.
Floods are common in spring.
The best maps were drawn by military surveyors.
Roads follow the valleys.
Much of the land is thinly settled.

country 2
The old constitution has been amended many times.
Elections are held every five years.
The courts are independent of the government.
Regional parties have long played a large part in politics.
Historians still argue about the causes of the break with the old order.

country 3
Markets are held in the open even in winter.
Emigration has slowed down in recent years.
Schooling is free up to the age of sixteen.
Cooking differs from valley to valley.
The harvest festival is the most important holiday.

region 0
{S} has a character of its own.
Its inhabitants are proud of their dialect.
Guidebooks recommend {o} for long walks.
Its name is of uncertain origin.
It has changed hands several times in the course of history.

region 1
Low hills and narrow valleys alternate.
The soil is stony and good for orchards.
The weather stations report dry summers.
Old mule tracks are used today by hikers.
Its boundaries follow watersheds for the most part.

region 2
The assembly meets four times a year.
Much power has been handed down from the central government.
Its budget is balanced, though narrowly.
The registry office publishes its figures every year.

region 3
Most of the places are old and have kept their market rights.
Some hamlets are too small to be counted on their own.
Distances between them are short, but the roads are winding.
The register of places was last revised a few years ago.

region 4
Hunting is restricted to the autumn.
Two reserves protect what is left of the old woods.
Observers count the animals every spring.
Much of the wildlife keeps away from the roads.

settlement 0
{S} has kept much of its old centre.
Its weekly market draws people from all around.
Visitors usually stay for a day.
The local dialect is hard to follow for outsiders.
Its name has been spelled in many ways.

settlement 1
The streets are steep and narrow.
Summers are dry, and fog is common in late autumn.
The surrounding fields are divided by stone walls.
A footpath leads around the old walls.
The road from the south is closed in heavy snow.

settlement 2
A great fire destroyed the archives, so that much is uncertain.
The walls were pulled down when they were no longer needed.
Excavations have brought coins and tiles to light.
Several wars passed {o} by.
It received market rights early on.

settlement 3
The town hall has a clock that runs slow.
Workshops line the main street.
The yearly fair lasts a week.
Local taxes are low.
Young people tend to leave and to come back.

settlement 4
A small museum keeps their memory.
Plaques on several houses remind visitors of them.
Other claims have been made, but they rest on hearsay.
Streets have been named in their honour.

river 0
{S} has a bad name among boatmen.
Its water is clear and cold.
Its name is older than any of the languages spoken there now.
It freezes over in hard winters.
It is popular with anglers.

river 1
The upper reaches are fast and full of rapids.
Further down it winds between meadows.
Ferries still cross it at several points.
The banks were strengthened after the great floods.
A towpath follows the left bank.

river 2
Water levels are highest in late spring.
The gauges are read every morning.
Dykes protect the lower fields.
The quality of the water has improved in the last decades.

mountain 0
{S} can be seen from far away on clear days.
Legends tell of a giant asleep beneath {o}.
Its outline appears on local coats of arms.
Its name is explained in several ways.

mountain 1
The northern face is steep, while the southern slopes are gentle.
Snow lies in the gullies until early summer.
The rock is hard and splits into large slabs.
A small hut below the ridge offers shelter.

mountain 2
Several earlier parties had turned back in bad weather.
The usual route follows the eastern ridge.
A book in a tin box on the top records every party.
Winter ascents remain rare.
"""
