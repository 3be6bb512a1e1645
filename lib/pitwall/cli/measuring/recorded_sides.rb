# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/recording/recording_options"
require "pitwall/errors"
require "pitwall/record"
require "pitwall/show"

module Pitwall
  module CLI
    # What `compare` does with recordings: hold two of them against each other, and a prediction against what happened.
    module RecordedSides
      # Options that two recordings have no use for.
      MEASURING = %i[fail_if record max_blocks control check in_turns why instructions syscalls retained budget warmup].freeze
      private_constant :MEASURING

      private

      def define_recorded_options(parser)
        parser.separator("Of two recordings, and of predictions (pitwall report --predict)")
        parser.on("--weight WEIGHT", %i[wall cpu], "wall or cpu (wall)") { |weight| @options[:weight] = weight }
        parser.on("--label NAME=VALUE", "only what ran under a label, e.g. route=orders#show; repeatable") { |text| RecordingOptions.label(@options, text) }
        parser.on("--before FILE", "another run of A.pit's side; repeatable: the noise between runs") { |file| (@options[:before] ||= []) << file }
        parser.on("--after FILE", "another run of B.pit's side; repeatable") { |file| (@options[:after] ||= []) << file }
        parser.on("--salvage", "read what is left of damaged recordings") { @options[:salvage] = true }
        parser.on("--predicted PLACE", "did removing PATH:LINE or a method save what was predicted?") { |place| @options[:predicted] = place }
        parser.on("--recording FILE", "what is predicted from, beside A.pit; repeatable: places of allocation") { |file| (@options[:recording] ||= []) << file }
      end

      # @raise [UsageError] recordings, but not two of them alone
      def check_recordings(files)
        recording = files.find { |file| file.end_with?(".pit") }
        return if recording.nil? || recordings?(files)
        raise UsageError, "#{recording}: one recording has nothing to be compared with: pitwall compare #{recording} OTHER.pit" if files.one? && !sides.any? && @command.nil?
        raise UsageError, "#{files[2]}: two recordings are compared; name further runs of either side: --before FILE, --after FILE" if files.size > 2 && files.all? { |file| file.end_with?(".pit") }

        raise UsageError, "#{recording}: a recording is compared with another one, and with nothing else: pitwall compare A.pit B.pit"
      end

      def recordings?(files) = files.size == 2 && !sides.any? && files.all? { |file| file.end_with?(".pit") }

      def check_recorded_options(two_recordings)
        raise UsageError, "--recording: is what --predicted is worked out from; add --predicted PLACE" if @options[:recording] && @options[:predicted].nil?
        return if two_recordings

        raise UsageError, "--label: is of what two recordings sampled: pitwall compare A.pit B.pit --label NAME=VALUE" if @options[:labels]
        raise UsageError, "--salvage: is for recordings, and none is compared: leave it out" if @options[:salvage] && @options[:recording].nil?

        odd = %i[before after].find { |name| @options[name] }
        raise UsageError, "--#{odd}: names another run beside two recordings: pitwall compare A.pit B.pit --#{odd} FILE" if odd
        return if @options[:predicted].nil?
        raise UsageError, "--predicted: is of a whole command, as recordings are: compare SIDE… --predicted PLACE --recording X.pit -- CMD" if @command.nil?
        raise UsageError, "--predicted: name recordings of the base's command to predict from: --recording X.pit" if @options[:recording].nil?
      end

      # Two profiles: which methods' share differs. How long each took is a run of each, and no verdict; but of a prediction there is one.
      def compare_recordings(files)
        odd = MEASURING.find { |option| @options.key?(option) }
        raise UsageError, "--#{odd.to_s.tr("_", "-").sub("max-blocks", "pairs")}: two recordings are held against each other as they are; it is for sides that are measured" if odd

        raise UsageError, "--predicted: is of a whole program: leave out --label" if @options[:labels] && @options[:predicted]

        check_output(files)
        names = files.zip(@options.values_at(:before, :after)).map { |file, more| [file, *more] }
        recordings = names.map { |side| side.map { |file| recorded(file) } }
        refuse_mixture(names.flatten, recordings.flatten)
        check_labels(names.flatten, recordings.flatten)
        segments = recordings.map { |side| side.map(&:segments) }
        return compare_objects(files, names, segments) if objects?(names, segments)

        a, b = segments.zip(Analyse::ProfileChange::Pair.bases(segments)).map { |side, base| Analyse::ProfileChange::Side.new(recordings: side, base: base) }
        @unlike = Analyse::ProfileChange::Pair.warnings(segments, files)
        change = Analyse::ProfileChange.compare(a: a, b: b, weight: @options.fetch(:weight, :wall), labels: @options[:labels])
        check = recorded_check(names, recordings)
        requests = Analyse::RequestChange.new(segments, base: files[0], side: files[1], labels: @options[:labels])
        unmarked = files.zip(segments).find { |_, runs| Analyse::Server.unmarked?(runs.flatten(1)) }
        @unlike += ["#{unmarked.first}: #{Analyse::Summary::UNMARKED}"] if unmarked
        publish(recordings_report(files, change, check, requests))
        return check_status(check) if check
        return requests_status(requests) if requests.any?

        change.reason ? Status::CANNOT_MEASURE : Status::OK
      end

      # One alarm is an alarm. Of many routes some are always undecided.
      def requests_status(requests)
        verdicts = requests.effects.map { |effect| effect.below_margin ? :same : effect.verdict }
        return Status::WORSE if (verdicts & %i[slower more]).any?

        verdicts.all?(:undecided) ? Status::UNDECIDED : Status::OK
      end

      # Were objects followed in all of them, and nothing else?
      # @raise [UsageError] in some of them, or in another way: objects and times can't be held against each other
      def objects?(names, segments)
        followed = segments.flatten(1).map { |recording| only_objects?(recording) }
        return false if followed.none? || @options[:predicted]

        other = names.flatten[followed.index(false)] unless followed.all?
        raise UsageError, "#{names.flatten[followed.index(true)]} holds objects, and #{other} times: they can't be held against each other; record both alike" if other
        raise UsageError, "--weight #{@options[:weight]}: is of times, and the recordings hold objects: leave it out" if @options.key?(:weight)

        true
      end

      def only_objects?(segments) = segments.any?(&:allocation_totals) && segments.none? { |segment| segment.sampled? || segment.traced? }

      # Two recordings of allocations: objects, bytes, and the sites that changed.
      def compare_objects(files, names, segments)
        bursts = segments.flatten(1).map { |recording| recording.any? { |segment| segment.allocation_totals&.bursts? } }
        if bursts.uniq.size > 1
          raise UsageError, "#{names.flatten[bursts.index(true)]} looked at objects in bursts, and #{names.flatten[bursts.index(false)]} at all of them: record both alike"
        end

        change = Analyse::AllocationChange.new(segments, bases: Analyse::ProfileChange::Pair.bases(segments))
        publish(objects_report(change, base: files[0], side: files[1], growth: growth(segments), warnings: Analyse::ProfileChange::Pair.warnings(segments, files)))
        Status::OK
      end

      # What keeps growing, by side; nil unless all recordings hold it.
      def growth(segments)
        found = segments.map { |side| side.map { |recording| Analyse::ObjectGrowth.new(recording) } }
        found if found.flatten.all?(&:any?)
      end

      def objects_report(change, base:, side:, warnings:, growth:)
        shown = { base: base, side: side, warnings: warnings, growth: growth, location: Show::Location.new(Dir.pwd) }
        return Show::MeasuredPage.of_objects(change, **shown) if @options[:format] == "html"

        view = Show::AllocationChangeView.new(change, **shown)
        case @options[:format]
        when "json" then JSON.generate({ "schema" => "pitwall/compare-1", "results" => [], "warnings" => warnings, "objects" => view.json })
        when "markdown" then view.markdown
        else view.lines(**rendering.slice(:width, :palette)).join("\n")
        end
      end

      def recorded(file)
        raise UsageError, "#{file}: no such file" unless File.file?(file)

        Pitwall::Record.read(file, salvage: @options.fetch(:salvage, false))
      end

      # A trace slows calls, so that shares of time can't be held against those of samples.
      def refuse_mixture(files, recordings)
        traced = recordings.map { |recording| recording.segments.any?(&:traced?) && recording.segments.none?(&:sampled?) }
        return if traced.uniq.size < 2

        trace, other = [true, false].map { |kind| files[traced.index(kind)] }
        raise UsageError, "#{trace} is traced and #{other} is not: a trace slows calls, so shares of time differ for that; record both alike"
      end

      # A label that one of them lacks would make everything a change.
      def check_labels(files, recordings)
        selection = Analyse::Selection.new(labels: @options[:labels])
        files.zip(recordings) do |file, recording|
          selection.check(recording.segments)
        rescue UsageError => error
          raise UsageError, "#{file}: #{error.message}"
        end
      end

      def recorded_check(names, recordings)
        place = @options[:predicted] or return
        refuse_unlike(names.flatten, recordings.flatten)
        before, after = recordings.map { |side| side.map(&:segments) }
        Analyse::PredictionCheck.of_recordings(place, before: before, after: after, more: predicted_from, weight: @options.fetch(:weight, :wall))
      end

      # Following objects takes time of its own: what differs would be that.
      def refuse_unlike(files, recordings)
        followed = recordings.map { |recording| recording.segments.map(&:allocation_totals).compact.map { |totals| totals.bursts? ? :bursts : :all }.first }
        return if followed.uniq.size < 2

        one, other = followed.uniq.first(2).map { |kind| files[followed.index(kind)] }
        raise UsageError, "--predicted: objects were followed otherwise in #{one} than in #{other}, which takes time: record both alike and name places of allocation by --recording"
      end

      def predicted_from = @options.fetch(:recording, []).map { |file| recorded(file).segments }

      # Saved, lost, or not known.
      def check_status(check)
        return Status::UNDECIDED if check.verdict == :undecided

        check.saving.high.negative? ? Status::WORSE : Status::OK
      end

      def recordings_report(files, change, check, requests)
        requests = Show::RequestChangeView.new(requests)
        case @options[:format]
        when "json" then recordings_json(files, change, check, requests)
        when "html" then Show::MeasuredPage.of_change(change, base: files[0], side: files[1], requests: requests.parts)
        else recordings_text(files, change, check, requests)
        end
      end

      def recordings_text(files, change, check, requests)
        look = rendering
        palette = @options[:format] == "markdown" ? Show::Plain : look[:palette]
        lines = check ? [*Show::PredictionCheckView.new(check, base: files[0], side: files[1]).lines(width: look[:width], palette: palette), ""] : []
        lines += requests.lines(width: look[:width], palette: palette)
        lines += Show::WhyText.new(width: look[:width], palette: palette, location: Show::Location.new(Dir.pwd), warnings: @unlike).lines(change, base: files[0], side: files[1])
        (@options[:format] == "markdown" ? ["```", *lines, "```"] : lines).join("\n")
      end

      def recordings_json(files, change, check, requests)
        object = { "schema" => "pitwall/compare-1", "results" => Show::JsonValues.clean(requests.json), "warnings" => @unlike, "why" => [Show::WhyJson.body(change, base: files[0], side: files[1])] }
        object["predictions"] = [Show::PredictionCheckView.new(check, base: files[0], side: files[1]).json] if check
        JSON.generate(object)
      end

      # By side that was measured against the base.
      # @param before [Array<Array<Record::Segment>>] as predicted_from
      def measured_checks(report, before)
        weight = @options.fetch(:weight, :wall)
        report.effects.select { |effect| effect.metric == weight.to_s }.to_h do |effect|
          [effect.side, Analyse::PredictionCheck.of_effect(@options[:predicted], effect, before: before, weight: weight)]
        end
      end
    end
  end
end
