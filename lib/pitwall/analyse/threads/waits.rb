# frozen_string_literal: true

require "pitwall/analyse/recording/method_info"

module Pitwall
  module Analyse
    # Tells by the stack whether a thread waits for work or waits within work.
    #
    # Waits for work are: an empty queue, accept, select, sleep in the thread's own loop, and join in the main thread.
    # Waits within work delay the work: for a lock, a full queue, a connection, an answer, a child process.
    # A wait of an unknown kind counts as within work.
    # To support a library that waits for work in C, add its method to RECEIVE or NEAR_ROOT.
    class Waits
      # Calls that always wait for work: they return when work arrives.
      RECEIVE = ["TCPServer#accept", "TCPServer#sysaccept", "UNIXServer#accept", "UNIXServer#sysaccept",
                 "Socket#accept", "Socket#sysaccept", "NIO::Selector#select",
                 "Ractor.receive", "Ractor#receive", "Ractor::Port#receive"].freeze
      # Like RECEIVE, for all selectors of the io-event gem: IO::Event::Selector::EPoll#select…
      SELECTOR = /\AIO::Event::Selector::\w+#select\z/.freeze
      # Calls that wait for work only near the thread's root. Elsewhere, work waits in them for a connection or an
      # answer.
      # The number is the most methods between the root and the call. A block counts as its method.
      NEAR_ROOT = { "Thread::Queue#pop" => 3, "Thread::SizedQueue#pop" => 3,
                    "IO.select" => 2, "Kernel#select" => 2, "Kernel#sleep" => 1,
                    "Thread.stop" => 1, "Thread::ConditionVariable#wait" => 1 }.freeze
      # Other names of calls in NEAR_ROOT.
      ALIASES = { "Thread::Queue#shift" => "Thread::Queue#pop", "Thread::Queue#deq" => "Thread::Queue#pop",
                  "Queue#pop" => "Thread::Queue#pop",
                  "Thread::SizedQueue#shift" => "Thread::SizedQueue#pop",
                  "Thread::SizedQueue#deq" => "Thread::SizedQueue#pop",
                  "Process.sleep" => "Kernel#sleep", "Kernel.sleep" => "Kernel#sleep",
                  "ConditionVariable#wait" => "Thread::ConditionVariable#wait" }.freeze
      # Calls in which the main thread waits for other threads.
      JOIN = ["Thread#join", "Thread#value"].freeze
      # Methods in which the main thread of a server waits for signals and supervises its workers.
      SUPERVISORS = ["Puma::Cluster#run", "Sidekiq::CLI#launch", "Unicorn::HttpServer#master_sleep",
                     "Pitchfork::HttpServer#master_sleep"].freeze
      # Calls in which methods of SUPERVISORS wait.
      SUPERVISOR_WAITS = ["IO#wait_readable", "IO#wait", "IO.select", "Kernel#select", "Kernel#sleep"].freeze
      # Methods on the stack of a server's main thread. A main thread that accepts connections itself may have none.
      SERVERS = ["Puma::Launcher#run", "Rackup::Server#start", "Rack::Server#start", "WEBrick::GenericServer#start",
                 "Thin::Server#start", "Unicorn::HttpServer#join", "Unicorn::HttpServer#worker_loop",
                 "Pitchfork::HttpServer#join", "Falcon::Command::Serve#call", "Sidekiq::CLI#run",
                 "Resque::Worker#work", "SolidQueue::Supervisor#start", "GoodJob::CLI#start",
                 "Delayed::Worker#start"].freeze
      ACCEPT = /\A(?:TCPServer|UNIXServer|Socket)#(?:sys)?accept\z/.freeze
      # Methods that only run a block, or wait on behalf of their caller. NEAR_ROOT does not count them.
      PASS_THROUGH = ["Monitor#wait_for_cond", "MonitorMixin::ConditionVariable#wait", "Thread::Mutex#synchronize",
                      "Monitor#synchronize", "MonitorMixin#mon_synchronize", "MonitorMixin#synchronize", "Kernel#loop",
                      "Kernel#catch", "Thread.handle_interrupt", "Thread::Mutex#sleep", "Integer#times", "Array#each",
                      "Kernel#tap"].freeze
      private_constant :RECEIVE, :SELECTOR, :NEAR_ROOT, :ALIASES, :JOIN, :SUPERVISORS, :SUPERVISOR_WAITS, :SERVERS,
                       :ACCEPT, :PASS_THROUGH

      #: (Record::Segment) -> void
      def initialize(segment)
        @segment = segment
        @known = {}
        @servers = {}
      end

      # Whether a thread whose stack ends at this node waits for work.
      # @param main [bool] whether the thread is the main thread
      #: (Integer, main: bool) -> bool
      def for_work?(node, main:)
        @known.fetch([node, main]) { |key| @known[key] = decide(node, main) }
      end

      # Whether the stack of a main thread that ends at this node is a server's, which runs until it is stopped.
      #: (Integer) -> bool
      def serves?(node)
        @servers.fetch(node) do
          names = names_to_root(node)
          @servers[node] = names.first.to_s.match?(ACCEPT) || SERVERS.any? { |name| names.include?(name) }
        end
      end

      private

      def decide(node, main)
        names = names_to_root(node)
        call, *callers = names.drop_while { |name| name == "Thread::Mutex#sleep" } # below ConditionVariable#wait
        return false unless call
        return true if RECEIVE.include?(call) || call.match?(SELECTOR)
        return main if JOIN.include?(call)
        return main if SUPERVISOR_WAITS.include?(call) && SUPERVISORS.include?(callers.first)

        most = NEAR_ROOT[ALIASES.fetch(call, call)]
        !most.nil? && methods(callers) <= most
      end

      # Names of the methods from the leaf to the root. A block has the name of its method.
      def names_to_root(node)
        names = []
        while node.positive?
          names << MethodInfo.around(@segment.frame(node).name).sub(/ \([^()]*:\d+\)\z/, "")
          node = @segment.parents[node]
        end
        names
      end

      # Number of methods that lead to the wait. Methods between a block and the block's own method are not counted.
      def methods(names)
        names -= PASS_THROUGH
        count = 0
        until names.empty?
          outermost = names.rindex(names.first)
          names = names.drop(outermost + 1)
          count += 1
        end
        count
      end
    end
  end
end
